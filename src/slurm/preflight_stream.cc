#include "slurm/preflight_stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::slurm {
namespace {

namespace hub = rendezvous::hub;

// Sent by the dialing side in front of its nonce.
constexpr std::string_view kPreamble = "LOCKSTEP NODE 1\n";
constexpr std::size_t kMostContent = 256U << 10;
constexpr std::size_t kProof = std::tuple_size_v<hub::Mac>;

std::string_view bytes_of(const hub::Nonce& nonce) {
  return {reinterpret_cast<const char*>(nonce.data()), nonce.size()};
}

}  // namespace

PreflightStream::PreflightStream(io::Loop& loop, io::Fd fd, Side side, std::string token,
                                 std::string job, Events events)
    : fd_(std::move(fd)),
      watch_(loop, fd_.get()),
      side_(side),
      token_(std::move(token)),
      job_(std::move(job)),
      events_(std::move(events)),
      own_(hub::random_nonce()) {
  const int on = 1;
  // Small messages, each of which the other side waits for.
  setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  watch_.start(io::kReadable, [this](int ready) { on_event(ready); });
  if (side_ == Side::dials) put(std::string(kPreamble) + std::string(bytes_of(own_)));
}

// Computes the MAC of a message. It covers both nonces and the direction, so a message can be
// replayed neither on another connection nor back to its sender.
hub::Mac PreflightStream::proof(bool of_dialer, std::string_view content) const {
  const bool dials = side_ == Side::dials;
  return hub::prove(token_, of_dialer ? hub::Side::agent : hub::Side::hub, dials ? own_ : other_,
                    dials ? other_ : own_, "pre-flight " + job_ + " " + std::string(content));
}

// A frame is a 32-bit length, the kind as one byte, the body, and the MAC.
void PreflightStream::send(PreflightKind kind, std::string_view body) {
  std::string content(1, static_cast<char>(kind));
  content += body;
  if (!greeted_) {
    waiting_ = std::move(content);
    return;
  }
  const hub::Mac mac = proof(side_ == Side::dials, content);
  content.append(reinterpret_cast<const char*>(mac.data()), mac.size());
  std::string frame;
  codec::wire::Writer(frame).number(static_cast<std::uint32_t>(content.size()));
  put(frame + content);
}

void PreflightStream::put(std::string_view bytes) {
  unsent_ += bytes;
  flush();
}

void PreflightStream::flush() {
  while (!unsent_.empty()) {
    const ssize_t sent = ::send(fd_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) break;  // full or broken; reading tells which
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
  watch_.want(io::kReadable | (unsent_.empty() ? 0 : io::kWritable));
}

void PreflightStream::on_event(int ready) {
  if ((ready & io::kReadable) == 0) return flush();
  std::array<char, 16U << 10> buffer;
  const ssize_t got = recv(fd_.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return flush();
  if (got < 0) return end(fail_sys("the connection broke", errno).value());
  if (got == 0) return end({Errc::unavailable, "the connection was closed", {}, ECONNRESET});
  take({buffer.data(), static_cast<std::size_t>(got)});
}

// Processes received bytes. Returns false if the stream has ended or was destroyed by a callback.
bool PreflightStream::take(std::string_view bytes) {
  if (!greeted_ && !take_greeting(bytes)) return false;
  while (true) {
    const auto step = cutter_.next(bytes, kMostContent);
    if (step == codec::wire::FrameCutter::Step::more) return true;
    if (step == codec::wire::FrameCutter::Step::bad_length || !take_frame(cutter_.content()))
      return false;
  }
}

// The dialing side sends preamble and nonce, the accepting side only a nonce. The accepting side
// sends nothing before it has checked the preamble.
bool PreflightStream::take_greeting(std::string_view& bytes) {
  const std::string_view expected = side_ == Side::accepts ? kPreamble : std::string_view();
  const std::size_t size = expected.size() + other_.size();
  // The greeting may arrive in pieces, with frames behind it.
  const std::size_t taken = std::min(size - greeting_.size(), bytes.size());
  greeting_ += bytes.substr(0, taken);
  bytes.remove_prefix(taken);
  if (!expected.starts_with(std::string_view(greeting_).substr(0, expected.size()))) {
    end({Errc::corrupt, "another program answers", {}, 0});
    return false;
  }
  if (greeting_.size() < size) return false;
  std::copy(greeting_.end() - static_cast<std::ptrdiff_t>(other_.size()), greeting_.end(),
            other_.begin());
  greeted_ = true;
  if (side_ == Side::accepts) put(bytes_of(own_));
  if (!waiting_.empty()) {
    const std::string content = std::exchange(waiting_, {});
    send(static_cast<PreflightKind>(content.front()), std::string_view(content).substr(1));
  }
  return true;
}

// Checks the MAC before anything is read from the body. An empty body is possible, an empty frame
// is not.
bool PreflightStream::take_frame(std::string_view content) {
  if (content.size() > kProof) {
    const std::string_view told = content.substr(0, content.size() - kProof);
    hub::Mac mac{};
    std::copy(content.end() - kProof, content.end(), mac.begin());
    if (hub::same_mac(mac, proof(side_ == Side::accepts, told))) {
      const auto kind = static_cast<PreflightKind>(told.front());
      // Copy first: the callback may destroy this stream.
      const std::string body(told.substr(1));
      const auto tell = events_.message;
      const auto here = calls_.witness();
      tell(kind, body);
      return !here.gone();
    }
  }
  end({Errc::corrupt, "another program answers", {}, 0});
  return false;
}

// Reports the end once; the owner usually destroys this stream then.
void PreflightStream::end(const Error& error) {
  watch_.stop();
  if (const auto tell = std::exchange(events_.ended, nullptr)) tell(error);
}

}  // namespace lockstep::slurm
