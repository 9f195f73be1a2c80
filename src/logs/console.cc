// Routes the output of workers and agent to the sinks, and the log through them.
#include "logs/console.h"

#include "base/log.h"
#include "logs/console_sink.h"

#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::logs {
namespace {
// Compares device and inode: two descriptors of one terminal or one redirection are the same file.
bool same_file(int a, int b) {
  struct stat of_a {};
  struct stat of_b {};
  return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}
}  // namespace

Console::Console(io::Loop& loop) : Console(loop, Options()) {}

Console::Console(io::Loop& loop, Options options)
    : loop_(loop), fds_{options.out_fd, options.err_fd} {
  const auto make = [&](int fd) { return std::make_unique<ConsoleSink>(loop, fd, options); };
  sinks_[0] = make(options.out_fd);
  // With 2>&1 both streams share a sink, and so have a single order of lines.
  if (!same_file(options.out_fd, options.err_fd)) sinks_[1] = make(options.err_fd);
}

// Static instead of on the heap: for workers without output not a single page of it is used.
std::span<char> Console::scratch() {
  static char space[256 << 10];
  return space;
}

Console::~Console() {
  leave_log();
}

void Console::leave_log() {
  if (std::exchange(has_log_, false)) log::set_sink(nullptr, nullptr);
}

void Console::take_log() {
  has_log_ = true;
  log::set_sink(
      [](void* console, std::string_view lines) {
        static_cast<Console*>(console)->write(Stream::err, lines);
      },
      this);
}

std::size_t Console::index(Stream stream) const {
  return stream == Stream::err && sinks_[1] ? 1 : 0;
}

void Console::start_folding(Stream stream, const FoldPrefix& prefix) {
  auto& fold = folds_[index(stream)];
  if (fold) return;
  fold = std::make_unique<ConsoleFold>(
      loop_, prefix, [this, stream](std::string_view lines) { write_now(stream, lines); });
}

ConsoleFold* Console::fold(Stream stream) const {
  return folds_[index(stream)].get();
}

void Console::write(Stream stream, std::string_view lines) {
  // The agent's own words must not overtake lines that wait to be folded.
  if (ConsoleFold* const waiting = fold(stream)) waiting->flush();
  write_now(stream, lines);
}

void Console::write_now(Stream stream, std::string_view lines) {
  ConsoleSink& to = sink(stream);
  to.begin(nullptr, false).append(lines);
  to.end(nullptr, !lines.empty() && !lines.ends_with('\n'));
}

bool Console::drain(io::TimePoint deadline) {
  for (const auto& fold : folds_)
    if (fold) fold->flush();
  // Poll both sinks together: a stuck terminal must not use up the whole deadline of the other.
  for (;;) {
    pollfd waiting[2];
    nfds_t count = 0;
    for (const auto& one : sinks_) {
      if (one && one->pending() != 0) one->flush();
      if (one && one->pending() != 0) waiting[count++] = {one->poll_fd(), POLLOUT, 0};
    }
    if (count == 0) return !broken(Stream::out) && !broken(Stream::err);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - io::Clock::now());
    if (left.count() <= 0) return false;
    poll(waiting, count, static_cast<int>(std::min<long>(left.count(), 1000)));
  }
}

bool Console::broken(Stream stream) const {
  return sink(stream).broken();
}
std::size_t Console::pending(Stream stream) const {
  const ConsoleFold* const waiting = fold(stream);
  return sink(stream).pending() + (waiting != nullptr ? waiting->waiting() : 0);
}

void Console::attach(Stream stream, ConsoleSource& source) {
  sink(stream).attach(source);
}
void Console::detach(Stream stream, ConsoleSource& source) {
  sink(stream).detach(source);
}

bool Console::is_alone(Stream stream) const {
  return sink(stream).sources() == 1;
}

ByteQueue& Console::begin(Stream stream, ConsoleSource& source, bool takes_over) {
  return sink(stream).begin(&source, takes_over);
}

void Console::end(Stream stream, ConsoleSource& source, bool mid_line) {
  sink(stream).end(&source, mid_line);
}

int Console::fd(Stream stream) const {
  return fds_[stream == Stream::err ? 1 : 0];
}

}  // namespace lockstep::logs
