// Finds out whether an NCCL watchdog of this attempt has timed out: by its signal in the workers'
// store, which PyTorch 2.14 and older send, by its line on stderr, or by what another node tells.
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
  // rank: as another node has told.
  void hear(std::optional<int> rank);

  // Returns the rank whose watchdog has timed out; -1: one of unknown rank.
  std::optional<int> rank() const { return rank_; }

 private:
  store::SignalWatch signal_;
  std::optional<int> rank_;
};

}  // namespace lockstep::agent
