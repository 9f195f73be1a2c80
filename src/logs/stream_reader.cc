// Reads a worker's stream and distributes the bytes.
#include "logs/stream_reader.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::logs {
namespace {
// A bound for one turn: more than a pipe or pty holds by default.
constexpr std::size_t kMostAtOnce = 1 << 20;

std::size_t bytes_waiting(int fd) {
  int size = 0;
  return ioctl(fd, FIONREAD, &size) == 0 && size > 0 ? static_cast<std::size_t>(size) : 0;
}
}  // namespace

StreamReader::StreamReader(io::Loop& loop, Console& console, Parts parts)
    : console_(console),
      parts_(std::move(parts)),
      watch_(std::make_unique<io::Watch>(loop, parts_.input.get())),
      timer_(loop) {
  watch_->start(io::kReadable, [this](int) { on_readable(); });
  if (parts_.tagger) console_.attach(parts_.stream, *this);
  in_fold_ = parts_.folds;
  if (in_fold_) parts_.fold->attach(parts_.source);
}

StreamReader::~StreamReader() {
  leave_fold();
  if (parts_.tagger) console_.detach(parts_.stream, *this);
}

void StreamReader::on_pause(bool paused) {
  paused_ = paused;
  if (watch_) watch_->want(paused ? 0 : io::kReadable);
  if (paused || !parts_.tagger->holds()) return;
  // The end of the line may have been waiting in the pipe during the pause: start the hold time
  // anew.
  hold_.begin(io::Clock::now());
  hold_on();
}

void StreamReader::on_cut() {
  parts_.tagger->cut();
  hold_.on_cut();
}

StreamReader::Found StreamReader::read_once(std::size_t& left) {
  const auto space = console_.scratch();
  for (;;) {
    const ssize_t got = read(input(), space.data(), std::min(space.size(), left));
    if (got > 0) {
      left -= static_cast<std::size_t>(got);
      take({space.data(), static_cast<std::size_t>(got)});
      return Found::bytes;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && errno == EAGAIN ? Found::nothing : Found::end;  // a pty ends with EIO
  }
}

void StreamReader::on_readable() {
  std::size_t left = kMostAtOnce;
  if (read_once(left) != Found::end) return;
  finish();
  // on_end_ may destroy this object: call it last.
  if (const auto fn = std::exchange(on_end_, nullptr)) fn();
}

void StreamReader::take_now() {
  // Read no more than is there now, since descendants may write for ever. For a pty the count lacks
  // bytes still on their way through the kernel, so use a fixed bound.
  std::size_t left = isatty(input()) == 1 ? kMostAtOnce : bytes_waiting(input());
  while (watch_ && left > 0) {
    const Found found = read_once(left);
    if (found == Found::end) return finish();
    if (found == Found::nothing) break;
  }
  release_held();
  leave_fold();
}

// All lines of one read get the same time.
void StreamReader::stamp() {
  if (!parts_.prefix.timed()) return;
  std::string prefix = parts_.prefix.at(std::chrono::system_clock::now());
  if (parts_.filter) parts_.filter->set_prefix(prefix);
  if (parts_.tagger) parts_.tagger->set_prefix(std::move(prefix));
}

void StreamReader::take(std::string_view bytes) {
  bytes_read_ += bytes.size();
  last_read_ = io::Clock::now();
  stamp();
  // The file comes first: it must be complete even if the console is broken.
  if (parts_.file) parts_.file->write(bytes);
  if (parts_.keep_tail) tail_.append(bytes);
  newest_.append(bytes);
  if (parts_.filter) {
    ByteQueue picked;
    parts_.filter->feed(bytes, picked);
    parts_.filtered->write(picked.view());
  }
  if (parts_.tagger && !console_.broken(parts_.stream)) show(bytes);
}

void StreamReader::show(std::string_view bytes) {
  parts_.folds ? show_folded(bytes) : show_plain(bytes);
}

// Whole lines may wait for equal lines of other workers. Everything else is drawn on a terminal
// right now and must not wait.
void StreamReader::show_folded(std::string_view bytes) {
  LineTagger& tagger = *parts_.tagger;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
    const std::string_view piece = bytes.substr(0, size);
    bytes.remove_prefix(size);
    // A '\r' before the line's end means that the line is redrawn: a progress bar.
    const bool draws = tagger.holds_cr() || piece.find('\r') != piece.npos;
    const bool whole = tagger.at_line_start() && piece.ends_with('\n') && !draws;
    if (draws && piece.ends_with('\n') && draw_folded(piece)) continue;
    if (!whole) {
      show_plain(piece);
    } else if (tagger.holds()) {
      parts_.fold->put(parts_.source, std::string(tagger.held()).append(piece));
      tagger.drop_held();
    } else {
      parts_.fold->put(parts_.source, piece);
    }
  }
  parts_.fold->commit();
}

// Offers the held bytes and `rest` to the fold as a frame of a progress bar. Returns false and
// keeps the held bytes if the fold leaves the bar to this worker.
bool StreamReader::draw_folded(std::string_view rest) {
  LineTagger& tagger = *parts_.tagger;
  if (!parts_.folds || !tagger.starts_with_prefix()) return false;
  if (!parts_.fold->draw(parts_.source, std::string(tagger.held()).append(rest))) return false;
  tagger.drop_held();
  return true;
}

// Waiting lines of this worker must appear before the next plain output.
void StreamReader::show_folded_first() const {
  if (parts_.fold != nullptr) parts_.fold->flush_of(parts_.source);
}

void StreamReader::leave_fold() {
  if (std::exchange(in_fold_, false)) parts_.fold->detach(parts_.source);
}

void StreamReader::show_plain(std::string_view bytes) {
  LineTagger& tagger = *parts_.tagger;
  // Another frame of a progress bar: an interrupted frame is not shown again.
  if (bytes.find('\r') != bytes.npos) hold_.on_line_end();
  if (tagger.ready(bytes)) {
    show_folded_first();
    const bool takes_over = !tagger.prefixed() && tagger.first(bytes) == '\r';
    tagger.feed(bytes, console_.begin(parts_.stream, *this, takes_over));
    console_.end(parts_.stream, *this, tagger.mid_line());
    hold_.begin(io::Clock::now());
    if (tagger.at_line_start()) hold_.on_line_end();
  } else {
    if (!tagger.holds()) hold_.begin(io::Clock::now());
    ByteQueue nothing;
    tagger.feed(bytes, nothing);
  }
  if (tagger.holds()) hold_on();
}

// A line without a prefix belongs to a job that shows one rank, or to one of many ranks.
io::Duration StreamReader::time_to_hold() const {
  const LineTagger& tagger = *parts_.tagger;
  const bool alone = !tagger.prefixed() && console_.is_alone(parts_.stream);
  return hold_.due(tagger.redraws() || alone) - io::Clock::now();
}

void StreamReader::hold_on() {
  const io::Duration least = std::chrono::milliseconds(1);
  const io::Duration rest = std::max(time_to_hold(), least);
  const io::TimePoint at = io::Clock::now() + rest;
  // Only earlier: steady output must not push the timer away.
  if (timer_.active() && fires_ <= at) return;
  fires_ = at;
  timer_.start(rest, [this] { on_held_long(); });
}

void StreamReader::on_held_long() {
  if (paused_ || !parts_.tagger->holds()) return;
  // More bytes wait in the pipe, perhaps the end of the line: hold on. A bar has no end to wait
  // for.
  const bool more = !parts_.tagger->redraws() && bytes_waiting(input()) != 0;
  if (time_to_hold() > io::Duration::zero() || more) return hold_on();
  release_held();
}

void StreamReader::release_held() {
  if (!parts_.tagger || !parts_.tagger->holds()) return;
  stamp();
  if (parts_.tagger->holds_cr() && draw_folded({})) return;
  show_folded_first();
  LineTagger& tagger = *parts_.tagger;
  const bool takes_over = !tagger.prefixed() && tagger.first({}) == '\r';
  tagger.flush(console_.begin(parts_.stream, *this, takes_over));
  console_.end(parts_.stream, *this, tagger.mid_line());
}

void StreamReader::finish() {
  watch_.reset();
  timer_.cancel();
  release_held();
  leave_fold();
  stamp();
  if (parts_.filter) {
    ByteQueue picked;
    parts_.filter->finish(picked);
    parts_.filtered->write(picked.view());
  }
}

std::string StreamReader::tail(std::size_t lines) const {
  return tail_text(tail_.bytes(), lines, tail_.cut());
}

}  // namespace lockstep::logs
