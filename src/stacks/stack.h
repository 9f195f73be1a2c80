// A stack of a Python thread, as text that a person reads.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>
namespace lockstep::stacks {
// A line of a Python function that runs or waits.
struct Frame {
  std::string function;  // qualified where the interpreter has it (3.11 and later): `Model.forward`
  std::string file;      // as the code object has it
  int line = 0;          // 0: unknown
  friend bool operator==(const Frame&, const Frame&) = default;
};
// Frames are ordered from the innermost to the outermost.
struct ThreadStack {
  pid_t tid = 0;  // 0: the interpreter does not say (before 3.11)
  bool holds_gil = false;
  bool whole = true;  // false: the stack was deeper than the limit, or changed while it was read
  std::vector<Frame> frames;
  friend bool operator==(const ThreadStack&, const ThreadStack&) = default;
};
}  // namespace lockstep::stacks
