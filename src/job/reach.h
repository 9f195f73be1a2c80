// Finds the addresses at which hosts can really reach each other. Every host listens and sends a
// secret to each caller; every host calls the others at the same time. The secret matters, because
// a private address may exist on several hosts.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"

#include <chrono>
#include <functional>
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

// A host to call.
struct ReachTarget {
  std::vector<std::string> addresses;  // numeric
  int port = 0;
  std::string secret;
};

// Calls all targets at once. Destroying the trial ends it.
class ReachTrial {
 public:
  // For each target: the addresses that answer with its secret, in the given order.
  using Reached = std::vector<std::vector<std::string>>;
  // Calls `done` once, from the loop, within `limit`. `done` must not destroy the trial.
  ReachTrial(io::Loop& loop, const std::vector<ReachTarget>& targets,
             std::chrono::milliseconds limit, std::function<void(const Reached&)> done);
  ~ReachTrial();

 private:
  struct Call;
  void begin(Call& call);
  void listen_to(Call& call);
  void look();
  void finish();

  io::Loop& loop_;
  std::function<void(const Reached&)> done_;
  std::size_t targets_;
  std::vector<std::unique_ptr<Call>> calls_;
  io::Timer timer_;
  bool in_grace_ = false;
};

}  // namespace lockstep::job
