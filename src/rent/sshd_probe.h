// Connects to an address and waits for the greeting of an SSH server.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"

#include <functional>
#include <memory>
#include <string>

namespace lockstep::rent {

class SshdProbe {
 public:
  // done: called once, never from inside the constructor. The error says why, as "connection
  // refused".
  SshdProbe(io::Loop& loop, const std::string& address, int port, std::function<void(Status)> done);
  SshdProbe(const SshdProbe&) = delete;
  SshdProbe& operator=(const SshdProbe&) = delete;

 private:
  Status connect(const std::string& address, int port);
  void on_ready();
  void finish(Status status);

  std::function<void(Status)> done_;
  io::Fd fd_;
  std::unique_ptr<io::Watch> watch_;
  io::Timer patience_;
  bool connected_ = false;
};

}  // namespace lockstep::rent
