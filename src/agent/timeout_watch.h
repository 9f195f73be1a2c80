// Finds out whether an NCCL watchdog of this attempt has timed out. Three signs tell: the
// watchdog's signal in the workers' store (PyTorch 2.14 and older), its line on stderr, and another
// node's news.
#pragma once

#include "logs/capture.h"
#include "store/server.h"
#include "store/watchdog_signal.h"

#include <optional>

namespace lockstep::agent {

class TimeoutWatch {
 public:
  void attempt_starts() { *this = {}; }

  // Call at each look, on the node of the store.
  void read(const store::Server& store);
  // Call if the rank has printed since the last look: the search costs time.
  void read(int rank, const logs::Capture& output);
  // Takes the news of another node.
  void hear(std::optional<int> rank);

  // Returns the rank whose watchdog has timed out. -1: of unknown rank; nullopt: none has.
  std::optional<int> rank() const { return rank_; }

 private:
  store::SignalWatch signal_;
  std::optional<int> rank_;
};

}  // namespace lockstep::agent
