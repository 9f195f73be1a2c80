// A session through the socket of an ssh master: hands three descriptors over and waits for the
// end. Destroy it, and the session ends.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::ssh {

class MuxSession {
 public:
  struct Events {
    std::function<void()> opened;
    // code: of the remote command; nullopt: the connection, or its master, is gone.
    std::function<void(std::optional<int> code)> ended;
    std::function<void(Error)> refused;  // by the master or by the server
  };
  // The ends that the remote command has as its streams; they are closed here once they were sent.
  struct Streams {
    io::Fd in;
    io::Fd out;
    io::Fd err;
  };

  // unavailable: no master listens there.
  static Result<std::unique_ptr<MuxSession>> open(io::Loop& loop, const std::string& socket,
                                                  const std::string& command,
                                                  const Streams& streams, Events events);
  // A connection to host:port as the server sees them, pumped by the master between it and
  // `socket`.
  static Result<std::unique_ptr<MuxSession>> forward(io::Loop& loop, const std::string& control,
                                                     const std::string& host, int port, int socket,
                                                     Events events);
  MuxSession(const MuxSession&) = delete;
  MuxSession& operator=(const MuxSession&) = delete;

 private:
  MuxSession(io::Loop& loop, io::Fd fd, Events events);
  static Result<std::unique_ptr<MuxSession>> ask(io::Loop& loop, const std::string& control,
                                                 const std::string& request,
                                                 std::initializer_list<int> fds, Events events);
  void receive();
  void end();

  io::Fd fd_;
  io::Watch watch_;
  Events events_;
  std::string pending_;
  std::optional<int> code_;
  CallbackScope calls_;
};

}  // namespace lockstep::ssh
