// Moves bytes between a socket, TLS and the handlers.
#include "http/stream.h"

#include <errno.h>
#include <sys/socket.h>

#include <array>
#include <utility>

namespace lockstep::http {

Stream::Stream(io::Loop& loop, io::Fd fd, std::unique_ptr<TlsSession> tls)
    : fd_(std::move(fd)), tls_(std::move(tls)), watch_(loop, fd_.get()) {
  watch_.start(io::kReadable, [this](int events) { on_event(events); });
  if (tls_) out_ = tls_->take_output();
  want();
}

Stream::~Stream() = default;

void Stream::write(std::string_view bytes) {
  wrote_ = true;
  if (tls_) {
    if (auto written = tls_->write(bytes); !written) trouble_ = std::move(written);
    out_ += tls_->take_output();
  } else {
    out_ += bytes;
  }
  flush();
  want();
}

io::Fd Stream::release() {
  handlers_ = {};
  watch_.stop();
  return std::move(fd_);
}

// A failed write is reported in the next turn, so watch for writability to get one.
void Stream::want() {
  const bool more = sent_ < out_.size() || !trouble_;
  watch_.want(more ? io::kReadable | io::kWritable : io::kReadable);
}

void Stream::on_event(int events) {
  if ((events & io::kReadable) != 0) {
    Read read = receive();
    // After an error no event follows, so read up to the error.
    while (read == Read::bytes && (events & io::kHangup) != 0)
      read = receive();
    if (read == Read::gone) return;
  }
  flush();
  if (!trouble_) {
    end(std::exchange(trouble_, {}));
    return;
  }
  want();
}

// One read per turn: a fast peer must not starve other events.
Stream::Read Stream::receive() {
  std::array<char, 64 << 10> chunk;
  const ssize_t got = recv(fd_.get(), chunk.data(), chunk.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Read::nothing;
  if (got < 0) return end(fail_sys("read", errno));
  if (got == 0) {
    // TLS has an end of its own: without it an attacker may have cut the answer.
    if (tls_ && !tls_->ended())
      return end(fail_sys("the connection ended without TLS's close_notify", ECONNRESET));
    return end({});
  }
  std::string_view bytes(chunk.data(), static_cast<std::size_t>(got));
  std::string plain;
  Status understood;
  if (tls_) {
    understood = tls_->feed(bytes, plain);
    out_ += tls_->take_output();
    bytes = plain;
  }
  // The handler may destroy this stream.
  const auto here = calls_.witness();
  if (!bytes.empty() && handlers_.bytes) {
    const auto call = handlers_.bytes;
    call(bytes);
    if (here.gone()) return Read::gone;
  }
  if (!understood) {
    flush();  // sends TLS's alert, which gives the reason
    return end(std::move(understood));
  }
  if (tls_ && tls_->ended()) return end({});
  return Read::bytes;
}

void Stream::flush() {
  while (sent_ < out_.size() && trouble_) {
    const ssize_t put = send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return;
    if (put < 0) {
      // Do not report inside write(): the caller does not expect its own destruction there. The
      // server may also have sent an answer before it closed, which is read first.
      trouble_ = fail_sys("write", errno);
      return;
    }
    sent_ += static_cast<std::size_t>(put);
  }
  if (sent_ == out_.size()) {
    out_.clear();
    sent_ = 0;
  }
}

Stream::Read Stream::end(Status status) {
  watch_.stop();
  if (const auto call = std::exchange(handlers_.ended, nullptr)) call(std::move(status));
  return Read::gone;
}

}  // namespace lockstep::http
