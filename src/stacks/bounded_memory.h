// A memory that answers only so many reads, for so long. Pointers of a process that changes, or of
// a hostile one, may lead in circles.
#pragma once

#include "stacks/memory.h"

#include <chrono>

namespace lockstep::stacks {

struct ReadLimits {
  std::size_t pieces = 100'000;
  std::chrono::milliseconds time{100};
};

class BoundedMemory final : public Memory {
 public:
  BoundedMemory(Memory& memory, const ReadLimits& limits)
      : memory_(memory), left_(limits.pieces), end_(Clock::now() + limits.time) {}

  std::size_t read_pieces(std::span<const Piece> pieces) override {
    if (exhausted_ || pieces.size() > left_ || Clock::now() > end_) {
      exhausted_ = true;
      return 0;
    }
    left_ -= pieces.size();
    return memory_.read_pieces(pieces);
  }

  // Returns true once a read was refused. All later reads are refused too.
  bool exhausted() const { return exhausted_; }

 private:
  using Clock = std::chrono::steady_clock;

  Memory& memory_;
  std::size_t left_;
  Clock::time_point end_;
  bool exhausted_ = false;
};

}  // namespace lockstep::stacks
