// Reading, writing and ending a connection.
#include "rendezvous/hub/hub_stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::rendezvous::hub {
namespace {
// A peer with this much unread data counts as gone. The limit is larger than all reports of a job,
// the largest frame. It bounds the memory for frozen agents.
constexpr std::size_t kMostUnsent = 16U << 20;
}  // namespace

void tune_socket(int fd) {
  const int on = 1;
  // Frames are small and awaited, so the kernel must not gather them.
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // Heartbeats are few and small. After a short network cut, retransmit them in even steps instead
  // of ever longer ones.
  setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof on);
}

HubStream::HubStream(io::Loop& loop, io::Fd fd, Events events)
    : fd_(std::move(fd)), watch_(loop, fd_.get()), events_(std::move(events)) {
  static const auto preamble = std::make_shared<const std::string>(kPreamble);
  tune_socket(fd_.get());
  watch_.start(io::kReadable, [this](int ready) { on_event(ready); });
  send(preamble);
}

void HubStream::send(const Frame& frame) {
  send(std::make_shared<const std::string>(frame_bytes(frame)));
}

void HubStream::send(Bytes bytes) {
  unsent_ += bytes->size();
  queue_.push_back(std::move(bytes));
  // No callback may run inside send(). Shut the socket down, so that its own event reports the end.
  if (unsent_ > kMostUnsent) shutdown(fd_.get(), SHUT_RDWR);
  if (writable_) flush();
}

void HubStream::flush() {
  if (ended_) return;
  while (!queue_.empty()) {
    const std::string& first = *queue_.front();
    const ssize_t put = ::send(fd_.get(), first.data() + sent_, first.size() - sent_, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    // The socket is full or broken. Reading reports a broken socket.
    if (put < 0) break;
    sent_ += static_cast<std::size_t>(put);
    unsent_ -= static_cast<std::size_t>(put);
    if (sent_ < first.size()) continue;
    queue_.pop_front();
    sent_ = 0;
  }
  writable_ = queue_.empty();
  watch_.want(io::kReadable | (writable_ ? 0 : io::kWritable));
}

void HubStream::on_event(int ready) {
  if ((ready & io::kReadable) == 0) return flush();
  // A callback may destroy this stream.
  const auto here = calls_.witness();
  // After an error no event follows, so read up to the error.
  while (receive() && (ready & io::kHangup) != 0) {
  }
  if (!here.gone() && (ready & io::kWritable) != 0) flush();
}

// Returns whether bytes came, and this stream is still here for more.
bool HubStream::receive() {
  std::array<char, 16U << 10> buffer;
  const ssize_t got = recv(fd_.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    end(got < 0 ? fail_sys("the connection broke", errno).value()
                : Error{Errc::unavailable, "the connection was closed", {}, ECONNRESET});
    return false;
  }
  heard_ = true;
  const auto here = calls_.witness();
  if (events_.bytes) events_.bytes();
  std::string_view chunk(buffer.data(), static_cast<std::size_t>(got));
  while (!here.gone()) {
    Frame frame;
    const auto step = reader_.next(chunk, frame);
    if (step == FrameReader::Step::more) return true;
    if (step == FrameReader::Step::error) {
      end({Errc::corrupt, reader_.error(), {}, 0});
      return false;
    }
    // Copy the function: the call may replace the events.
    const auto tell = events_.frame;
    tell(std::move(frame));
  }
  return false;
}

void HubStream::end(const Error& error) {
  ended_ = true;
  watch_.stop();
  if (const auto tell = std::exchange(events_.ended, nullptr)) tell(error);
}

Stranger recognise(std::string_view first) {
  constexpr std::string_view kNewStore("\x00\xCE\xF7\x85\x3C", 5);
  if (first.starts_with(kNewStore)) return Stranger::tcp_store;
  // An old PyTorch client sends an opcode and the length of a key, without a handshake.
  const bool length = first.size() >= 9 && first[1] != 0 &&
                      first.substr(3, 6).find_first_not_of('\0') == std::string_view::npos;
  if (length && static_cast<unsigned char>(first[0]) < 12) return Stranger::tcp_store;
  for (const std::string_view word : {"HTTP/", "GET ", "HEAD ", "POST ", "PUT ", "<!DO", "<htm"}) {
    if (first.starts_with(word)) return Stranger::web;
  }
  return first.starts_with("SSH-") ? Stranger::ssh : Stranger::other;
}

}  // namespace lockstep::rendezvous::hub
