// The signal of NCCL's watchdogs in the store, up to PyTorch 2.14: the first rank whose collective
// has timed out sets a key, and all ranks then dump their flight recorders and end. Pure.
#pragma once

#include "store/engine.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::store {

// Returns the rank in the value of such a key: an int of four bytes. nullopt: no rank.
std::optional<int> signal_rank(std::string_view value);

class SignalWatch {
 public:
  // Returns the rank whose watchdog has timed out. -1: of unknown rank; nullopt: none has. Looks
  // through the keys only if the store has new ones: a training makes none.
  std::optional<int> look(const Engine& engine);

 private:
  std::uint64_t created_ = 0;  // Engine::created() at the last look
};

}  // namespace lockstep::store
