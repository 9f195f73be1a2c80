// Asks a proxy to connect to a server (CONNECT). The result behaves like a direct connection.
#pragma once

#include "base/error.h"
#include "http/proxy.h"
#include "http/response_parse.h"
#include "http/stream.h"
#include "io/fd.h"
#include "io/loop.h"

#include <functional>
#include <string>

namespace lockstep::http {

class Tunnel {
 public:
  using Done = std::function<void(Result<io::Fd>)>;

  // fd: connected to the proxy. `done` may destroy the tunnel.
  Tunnel(io::Loop& loop, io::Fd fd, Proxy proxy, const std::string& host, int port, Done done);

 private:
  void on_bytes(std::string_view bytes);
  void finish(Result<io::Fd> result);
  Failure refused(int status) const;

  Proxy proxy_;
  std::string place_;  // "HOST:PORT"
  Done done_;
  ResponseParser parser_{true};  // an answer to CONNECT has no body
  Stream stream_;
};

}  // namespace lockstep::http
