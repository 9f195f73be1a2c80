// Which address of one host another one really reaches: the first listens for a moment and says a
// number that no other host says (a private address may well exist on both hosts), the other tries.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::job {

class ReachedPlace {
 public:
  // Listens on a free port of every interface until it is destroyed.
  static Result<std::unique_ptr<ReachedPlace>> open(io::Loop& loop, std::string secret);
  int port() const { return port_; }

 private:
  ReachedPlace(io::Loop& loop, io::Fd fd, int port, std::string secret);
  void on_guest();

  io::Fd fd_;
  int port_;
  std::string secret_;
  io::Watch watch_;
};

// Those of `addresses` (numeric) at which the secret is heard within the time, in their order.
// Blocks for as long as the slowest takes.
std::vector<std::string> reached_addresses(const std::vector<std::string>& addresses, int port,
                                           const std::string& secret,
                                           std::chrono::milliseconds limit);

}  // namespace lockstep::job
