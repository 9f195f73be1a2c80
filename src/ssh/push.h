// Sends the binary to a host, or its rest after an interrupted push, over a session of its own.
// Reports whether the binary arrived whole.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"
#include "link/stream_ends.h"
#include "ssh/binary.h"
#include "ssh/mux_session.h"

#include <functional>
#include <memory>
#include <string>

namespace lockstep::ssh {

class Push {
 public:
  // partial: bytes that an earlier push left on the host. done: called once, only after begin() has
  // returned.
  Push(io::Loop& loop, std::string socket, Binary binary, std::uint64_t partial,
       std::function<void(Status)> done);
  Push(const Push&) = delete;
  Push& operator=(const Push&) = delete;

  // Opens the session and starts to send. If begin() fails, `done` is never called.
  Status begin();
  // Returns whether the binary arrived cut or damaged: a second push may succeed.
  bool arrived_damaged() const { return damaged_; }

 private:
  Status open_session(const std::string& command);
  void watch(io::Fd in, io::Fd out, io::Fd err);
  void on_end();

  io::Loop& loop_;
  std::string socket_;
  Binary binary_;
  std::uint64_t partial_;
  bool damaged_ = false;
  std::function<void(Status)> done_;
  io::Fd file_;
  io::Fd in_;
  io::Fd out_;
  io::Fd err_;
  std::unique_ptr<link::Source> from_file_;
  std::unique_ptr<link::Sink> to_host_;
  std::string output_;
  std::string errors_;
  std::unique_ptr<link::Source> from_out_;
  std::unique_ptr<link::Source> from_err_;
  std::unique_ptr<MuxSession> session_;
  CallbackScope calls_;
};

}  // namespace lockstep::ssh
