// Reads the threads of ranks for a command, from outside.
#pragma once

#include "looks/answer.h"
#include "looks/process_reader.h"
#include "looks/question.h"
#include "looks/rank_look.h"
#include "looks/stack_source.h"

#include <span>
#include <vector>

namespace lockstep::looks {

// Returns whether the memory of the process may be read at this moment. The pid must still belong
// to the same process, and the state must not hold up a reader (may_read_memory()).
bool may_read_now(const ProcessReader& reader, const RankLook& look);

// Returns the Python stacks of a rank: of all threads, or of the main thread. Where a reader might
// have to wait for the process, the stack of the last look.
std::vector<stacks::ThreadStack> python_stacks(const ProcessReader& reader, StackSource& stacks,
                                               const RankLook& look, bool all);

// Fills the parts of the answer that the question asks for. Blocks for about a second at most, and
// the texts have about a MiB at most: ranks and threads beyond that are counted as left out.
void read_threads(std::span<const RankLook> ranks, const Question& question,
                  const ProcessReader& reader, StackSource& stacks, Answer& answer);

}  // namespace lockstep::looks
