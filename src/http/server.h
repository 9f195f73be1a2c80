// A small HTTP server for probes, scrapers and the status page: GET and HEAD, one request per
// connection, with limits on everything. Runs on the loop's thread. Handlers must not block or
// destroy the server.
//
// A client whose answer goes on (Response::goes_on) stays connected as a viewer and gets what
// send_to_viewers() sends, until the client or the server closes.
#pragma once

#include "base/error.h"
#include "http/request_parse.h"
#include "io/fd.h"
#include "io/loop.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::http {

using Handler = std::function<Response(const Request&)>;
using Handlers = std::map<std::string, Handler, std::less<>>;  // by exact path

struct ServerLimits {
  std::size_t connections = 64;                    // one more closes the oldest
  io::Duration timeout = std::chrono::seconds(5);  // for a connection, from accept to close
  bool own_user_only = false;  // of a Unix socket: closes connections of other users
  std::size_t viewers = 0;     // one more gets status 503
  // A viewer is dropped if more bytes than this wait for it, or if it takes none for `timeout`.
  std::size_t viewer_bytes = 1UL << 20;
};

class Server {
 public:
  // Opens the port. host and port: see io::open_listener(). Fails with already_exists if the port
  // is taken.
  static Result<std::unique_ptr<Server>> listen(io::Loop& loop, const std::string& host,
                                                std::uint16_t port, Handlers handlers,
                                                ServerLimits limits = {});
  // Serves on a listener that is open already, such as a Unix socket. Its port() is 0.
  static std::unique_ptr<Server> serve(io::Loop& loop, io::Fd listener, Handlers handlers,
                                       ServerLimits limits);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return port_; }
  std::size_t connections() const { return connections_.size(); }  // without viewers
  std::size_t viewers() const { return viewers_.size(); }
  void send_to_viewers(std::string_view bytes);

 private:
  class Connection;

  Server(io::Loop& loop, io::Fd listener, std::uint16_t port, Handlers handlers,
         ServerLimits limits);
  void accept_all();
  void pause_accepting();
  Response answer(const Request& request) const;

  io::Loop& loop_;
  Handlers handlers_;
  ServerLimits limits_;
  std::uint16_t port_;
  io::Fd listener_;
  io::Watch watch_;
  io::Timer retry_;
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;  // oldest first
  std::map<std::uint64_t, std::unique_ptr<Connection>> viewers_;
};

}  // namespace lockstep::http
