#include "link/endpoint.h"

#include <errno.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace lockstep::link {
namespace {
// Reads in one turn of the loop, so that a busy link does not starve other links.
constexpr int kReadsInATurn = 8;
// Written bytes stay at the front of the buffer until this many: moving the rest each time would be
// quadratic.
constexpr std::size_t kCompact = 1UL << 20;
// A client never has more in flight than a Start and the windows of a few channels.
constexpr std::size_t kMostUnsent = 64UL << 20;
}  // namespace

Endpoint::Endpoint(io::Loop& loop, io::Fd in, io::Fd out, FrameReader::Wants wants, Events events)
    : in_(std::move(in)),
      out_(std::move(out)),
      in_watch_(loop, in_.get()),
      out_watch_(loop, out_.get()),
      events_(std::move(events)),
      reader_(wants),
      later_(loop) {
  if (wants == FrameReader::Wants::greeting) rules_.emplace();
  in_watch_.start(io::kReadable, [this](int) { receive(); });
}

void Endpoint::greet() {
  unsent_ += kGreeting;
}

void Endpoint::send(const Frame& frame) {
  if (broken_) return;
  if (rules_) rules_->sent(frame);
  put_frame(unsent_, frame);
  // Write at once instead of in the next turn: most frames are small and fit, and an answer waits
  // for them.
  if (!waits_for_room_) flush();
  if (!rules_ || unsent_.size() - sent_ <= kMostUnsent) return;
  // A host that keeps asking and never reads would make this buffer grow without limit.
  broken_ = true;
  // End on the next turn: callers of send() do not expect the end inside the call.
  later_.start({}, [this] {
    end(fail(Errc::corrupt, "the other end does not read the requested data").value());
  });
}

void Endpoint::flush() {
  while (sent_ < unsent_.size()) {
    const ssize_t put = write(out_.get(), unsent_.data() + sent_, unsent_.size() - sent_);
    if (put > 0) {
      sent_ += static_cast<std::size_t>(put);
    } else if (put < 0 && errno == EAGAIN) {
      break;
    } else if (put == 0 || errno != EINTR) {
      // The reading side reports the end. Frames received before still count.
      broken_ = true;
      sent_ = unsent_.size();
    }
  }
  if (sent_ == unsent_.size()) {
    unsent_.clear();
    sent_ = 0;
  } else if (sent_ >= kCompact) {
    unsent_.erase(0, sent_);
    sent_ = 0;
  }
  const bool waits = !unsent_.empty();
  if (waits == waits_for_room_) return;
  waits_for_room_ = waits;
  if (waits) return out_watch_.start(io::kWritable, [this](int) { flush(); });
  out_watch_.stop();
}

void Endpoint::receive() {
  std::array<char, kMaxData> bytes;
  const auto here = calls_.witness();
  for (int reads = 0; reads < kReadsInATurn; ++reads) {
    const ssize_t got = read(in_.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got < 0) return end(fail_sys("read from the connection", errno).value());
    if (got == 0) return end(fail(Errc::canceled, "the connection was closed").value());
    std::string_view chunk(bytes.data(), static_cast<std::size_t>(got));
    Frame frame;
    // A read may end inside a frame, or bring several frames.
    FrameReader::Step step = FrameReader::Step::more;
    while ((step = reader_.next(chunk, frame)) == FrameReader::Step::frame) {
      // The event may have destroyed this object.
      if (!pass_on(std::move(frame)) || here.gone()) return;
    }
    if (step == FrameReader::Step::error)
      return end(fail(Errc::corrupt, "the other end sent " + reader_.error()).value());
  }
}

// Returns false if the frame ended the link.
bool Endpoint::pass_on(Frame frame) {
  const auto verdict = rules_ ? rules_->judge(frame) : HostRules::Verdict::take;
  if (verdict == HostRules::Verdict::refuse) {
    end(fail(Errc::corrupt, "the other end sent " + std::string(rules_->why())).value());
    return false;
  }
  if (verdict == HostRules::Verdict::take) events_.frame(std::move(frame));
  return true;
}

void Endpoint::end(const Error& error) {
  // A closed descriptor stays readable for ever, so the watch would spin.
  in_watch_.stop();
  broken_ = true;
  const auto ended = events_.ended;  // may destroy this
  ended(error);
}

}  // namespace lockstep::link
