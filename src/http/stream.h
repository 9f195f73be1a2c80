// A connected byte stream on the event loop, plain or TLS; both look alike from above.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "http/tls.h"
#include "io/fd.h"
#include "io/loop.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::http {

class Stream {
 public:
  struct Handlers {
    std::function<void(std::string_view)> bytes;
    // The last call, made once. Without an error the other end has said that nothing more comes.
    std::function<void(Status)> ended;
  };

  Stream(io::Loop& loop, io::Fd fd, std::unique_ptr<TlsSession> tls);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Any handler may destroy the stream.
  void listen(Handlers handlers) { handlers_ = std::move(handlers); }
  // Never calls back before it returns; `ended` tells what goes wrong.
  void write(std::string_view bytes);
  // Whether a byte of what was written may have left; through TLS none does before the handshake.
  bool spoke() const { return wrote_ && (!tls_ || tls_->ready()); }
  // The descriptor, for another stream. Of this one nothing more comes; it can only be destroyed.
  io::Fd release();

 private:
  void on_event(int events);
  bool receive();  // false: the stream is gone
  void flush();
  void want();
  bool end(Status status);

  io::Fd fd_;
  std::unique_ptr<TlsSession> tls_;
  io::Watch watch_;  // after fd_, so that it is destroyed first
  Handlers handlers_;
  std::string out_;
  std::size_t sent_ = 0;
  bool wrote_ = false;
  Status trouble_;  // a failed write, told in the next turn
  CallbackScope calls_;
};

}  // namespace lockstep::http
