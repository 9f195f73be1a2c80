// Asks the control plane of one worker for a dump of the flight recorder. A control plane is
// PyTorch's HTTP server on a Unix socket, which --aid starts (agent/aid_folder.h). The call runs on
// the event loop and has no callback and no time limit: the owner polls state(), and destroys the
// call to end it.
#pragma once

#include "http/response_parse.h"
#include "http/stream.h"
#include "io/fd.h"
#include "io/loop.h"

#include <cstddef>
#include <string>

namespace lockstep::agent {

class DumpCall {
 public:
  enum class State {
    asked,  // no whole answer yet
    dump,   // body() is a dump, or claims to be one
    none,   // the worker's PyTorch has no recorder to ask
    bad,    // the answer is too large, cut off or not HTTP
  };

  // socket: connected. limit: bytes of the answer; more are not kept.
  DumpCall(io::Loop& loop, io::Fd socket, std::size_t limit);

  State state() const { return state_; }
  const std::string& body() const { return body_; }

 private:
  void on_bytes(std::string_view bytes);
  void conclude();

  http::Stream stream_;
  http::ResponseParser answer_;
  std::size_t limit_;
  std::string body_;
  State state_ = State::asked;
};

}  // namespace lockstep::agent
