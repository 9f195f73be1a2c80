// The answers of several nodes in the one output of srun --label. srun mixes the lines of its
// tasks and cuts long lines, so each task prints its answer in short lines. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lockstep::slurm {

// Returns the lines of a task's answer, behind a line that marks the beginning. An answer must have
// no line breaks.
std::string print_pieces(std::string_view answer);

struct PieceLimits {
  std::size_t tasks = 16384;
  std::size_t bytes = 8UL << 20;  // of one answer
};
// Returns the answer of each task. Skips lines without a label, and drops lines before the mark and
// answers beyond the limits.
std::map<std::int64_t, std::string> join_pieces(std::string_view output,
                                                const PieceLimits& limits = {});

}  // namespace lockstep::slurm
