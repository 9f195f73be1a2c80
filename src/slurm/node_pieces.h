// The answers of several nodes in the one output of srun --label. srun mixes the lines of its
// tasks and cuts long lines, so each task prints its answer in short lines. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// Returns the lines of a task's answer. An answer has no line breaks.
std::string print_pieces(std::string_view answer);

struct PieceLimits {
  std::size_t tasks = 16384;
  std::size_t bytes = 8UL << 20;  // of one answer
};
// Returns the answers in the order of their tasks. Skips lines without a label, and drops answers
// beyond the limits.
std::vector<std::string> join_pieces(std::string_view output, const PieceLimits& limits = {});

}  // namespace lockstep::slurm
