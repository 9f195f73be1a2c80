// The line of an instruction, by the line table of its code object.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::stacks {

enum class LineTable {
  lnotab,       // 3.8 and 3.9: pairs of increments
  line_deltas,  // 3.10: pairs of increments, with ranges that have no line
  locations,    // 3.11 and later: entries of varying length (PEP 657)
};

// `offset`: of the instruction, in bytes from the start of the code; negative before the first
// instruction. Returns 0 if the instruction has no line, or the table does not reach so far. Takes
// any bytes.
int line_at(LineTable kind, std::span<const std::uint8_t> table, int first_line,
            std::int64_t offset);

}  // namespace lockstep::stacks
