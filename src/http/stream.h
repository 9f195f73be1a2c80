// A connected byte stream on the event loop, plain or TLS. Both look the same to the user.
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
    // Called once, as the last call. Without an error the peer has announced the end.
    std::function<void(Status)> ended;
  };

  Stream(io::Loop& loop, io::Fd fd, std::unique_ptr<TlsSession> tls);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Sets the handlers. Any handler may destroy the stream.
  void listen(Handlers handlers) { handlers_ = std::move(handlers); }
  // Queues and sends bytes. Never calls back before returning. `ended` reports a failure.
  void write(std::string_view bytes);
  // Returns whether written bytes may have left. With TLS none leaves before the handshake is done.
  bool spoke() const { return wrote_ && (!tls_ || tls_->ready()); }
  // Returns the descriptor for use by another stream. This stream then only can be destroyed.
  io::Fd release();

 private:
  enum class Read { bytes, nothing, gone };  // gone: the stream has ended, or is destroyed

  void on_event(int events);
  Read receive();
  void flush();
  void want();
  Read end(Status status);

  io::Fd fd_;
  std::unique_ptr<TlsSession> tls_;
  io::Watch watch_;  // declared after fd_, so that it is destroyed first
  Handlers handlers_;
  std::string out_;
  std::size_t sent_ = 0;
  bool wrote_ = false;
  Status trouble_;  // a failed write, reported in the next turn
  CallbackScope calls_;
};

}  // namespace lockstep::http
