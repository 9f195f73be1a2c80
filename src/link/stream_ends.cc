#include "link/stream_ends.h"

#include "link/frames.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::link {
namespace {
constexpr int kSendsInATurn = 8;
}

Source::Source(io::Loop& loop, int fd, bool pollable, Events events)
    : fd_(fd), events_(std::move(events)), room_(kWindow), turn_(loop) {
  if (pollable) {
    watch_ = std::make_unique<io::Watch>(loop, fd);
    watch_->start(io::kReadable, [this](int) { read_some(); });
  } else {
    // Files are read on the next turn, because poll() does not work on them.
    go_on();
  }
}

void Source::grant(std::size_t bytes) {
  room_ = std::min(room_ + bytes, kWindow);
  if (paused_) go_on();
}

void Source::pause() {
  paused_ = true;
  if (watch_) watch_->want(0);
}

void Source::go_on() {
  if (at_end_) return;
  paused_ = false;
  if (watch_) return watch_->want(io::kReadable);
  turn_.start({}, [this] { read_some(); });
}

void Source::read_some() {
  if (room_ == 0) return pause();
  std::array<char, kMaxData> bytes;
  // Never read more than the other end has granted: the rest stays in the pipe, which slows its
  // writer down. No buffer here can grow.
  const ssize_t got = read(fd_, bytes.data(), std::min(bytes.size(), room_));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return go_on();
  if (got <= 0) {  // a closed terminal returns EIO
    at_end_ = true;
    if (watch_) watch_->stop();
    return events_.eof();
  }
  room_ -= static_cast<std::size_t>(got);
  const auto here = calls_.witness();
  events_.data(std::string(bytes.data(), static_cast<std::size_t>(got)));
  if (!here.gone() && !watch_) go_on();
}

Feed::Feed(io::Loop& loop, Next next, Source::Events events)
    : next_(std::move(next)), events_(std::move(events)), room_(kWindow), turn_(loop) {
  go_on();
}

void Feed::grant(std::size_t bytes) {
  const bool paused = room_ == 0;
  room_ = std::min(room_ + bytes, kWindow);
  if (paused && room_ != 0) go_on();
}

void Feed::go_on() {
  if (!at_end_) turn_.start({}, [this] { send_some(); });
}

// Sends a little in each turn of the loop, so that a feed does not starve other streams.
void Feed::send_some() {
  const auto here = calls_.witness();
  for (int i = 0; i < kSendsInATurn && room_ != 0; ++i) {
    // `next` may return empty texts.
    while (sent_ == bytes_.size()) {
      auto more = next_();
      sent_ = 0;
      bytes_ = more ? std::move(*more) : std::string();
      if (more) continue;
      at_end_ = true;
      return events_.eof();
    }
    std::string part = bytes_.substr(sent_, std::min(kMaxData, room_));
    sent_ += part.size();
    room_ -= part.size();
    events_.data(std::move(part));
    if (here.gone()) return;
  }
  if (room_ != 0) go_on();
}

Sink::Sink(io::Loop& loop, int fd, bool pollable, Events events)
    : fd_(fd), events_(std::move(events)), turn_(loop) {
  if (pollable) watch_ = std::make_unique<io::Watch>(loop, fd);
}

void Sink::put(std::string_view bytes) {
  // Write from the caller's buffer if nothing waits: then most bytes are never copied.
  if (waiting_.empty() && !waits_) {
    const std::size_t written = write_some(bytes);
    untold_ += written;
    bytes.remove_prefix(written);
  }
  waiting_.append(bytes);
  if (!waits_) flush();
}

void Sink::finish() {
  finishing_ = true;
  flush();
}

void Sink::wait_for_room(bool wait) {
  if (wait == waits_ || !watch_) return;
  waits_ = wait;
  if (wait) return watch_->start(io::kWritable, [this](int) { flush(); });
  watch_->stop();
}

// Returns the number of bytes that are written or, once the reader is gone, dropped.
std::size_t Sink::write_some(std::string_view bytes) {
  std::size_t written = 0;
  while (written < bytes.size() && !broken_) {
    const ssize_t put = write(fd_, bytes.data() + written, bytes.size() - written);
    if (put > 0) {
      written += static_cast<std::size_t>(put);
      // Without a watch (a file) EAGAIN cannot happen.
    } else if (put < 0 && errno == EAGAIN && watch_) {
      return written;
    } else if (put == 0 || errno != EINTR) {
      // EPIPE, like any other error: the reader is gone.
      broken_ = true;
    }
  }
  return bytes.size();
}

void Sink::flush() {
  const std::size_t written = write_some(std::string_view(waiting_).substr(written_));
  written_ += written;
  untold_ += written;
  wait_for_room(written_ < waiting_.size());
  if (written_ == waiting_.size()) {
    waiting_.clear();
    written_ = 0;
  }
  if (untold_ == 0 && !(finishing_ && waiting_.empty())) return;
  // On the next turn, because put() must not call back.
  turn_.start({}, [this] {
    const auto here = calls_.witness();
    if (const std::size_t told = std::exchange(untold_, 0); told > 0) events_.consumed(told);
    if (!here.gone() && finishing_ && waiting_.empty()) events_.finished();
  });
}

}  // namespace lockstep::link
