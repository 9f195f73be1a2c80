// A session over an ssh master's socket: passes descriptors to the master and waits for the end.
// Destroying the object ends the session.
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
    // code: exit code of the remote command; nullopt: the connection or its master is gone.
    std::function<void(std::optional<int> code)> ended;
    std::function<void(Error)> refused;  // by the master or by the server behind it
  };
  // The remote command's ends of the pipes. The caller may close them once open() returns.
  struct Streams {
    io::Fd in;
    io::Fd out;
    io::Fd err;
  };

  // Opens a session for a command. unavailable: no master listens at the socket.
  static Result<std::unique_ptr<MuxSession>> open(io::Loop& loop, const std::string& socket,
                                                  const std::string& command,
                                                  const Streams& streams, Events events);
  // Opens a connection from the server to host:port. The master copies the bytes between that
  // connection and the descriptor `socket`.
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
