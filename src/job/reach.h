// Finds the addresses at which one host can really reach another. The first host listens and sends
// a secret to each caller; the other host calls. The secret matters, because a private address may
// exist on both hosts.
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
  // Listens on a free port of every interface until destroyed.
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

// Returns the addresses (numeric) that answer with the secret within `limit`, in the given order.
// Blocks for the slowest address.
std::vector<std::string> reached_addresses(const std::vector<std::string>& addresses, int port,
                                           const std::string& secret,
                                           std::chrono::milliseconds limit);

}  // namespace lockstep::job
