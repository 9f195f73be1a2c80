// The chain of frames of a thread, as addresses.
#pragma once

#include "stacks/layout.h"
#include "stacks/memory.h"

#include <cstdint>
#include <vector>

namespace lockstep::stacks {

constexpr std::size_t kMostFrames = 256;  // kept of a stack: the innermost

struct RawFrame {
  Address at = 0;
  Address previous = 0;
  Address code = 0;
  std::uint64_t instruction = 0;  // before 3.11 an index, then an address
  std::int32_t bytecode_index = 0;
  bool skipped = false;  // belongs to the interpreter itself
};

struct RawStack {
  std::vector<RawFrame> frames;  // from the innermost to the outermost
  bool whole = false;            // read to the end, and unchanged meanwhile
};

// Follows the frames of a thread, whose state is at this address. A thread that runs changes its
// frames during the walk. So all frames are read a second time, by one call, and the walk is
// repeated a few times if they differ.
RawStack walk_frames(Memory& memory, const Layout& layout, Address thread);

}  // namespace lockstep::stacks
