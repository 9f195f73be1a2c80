// The live table of `lockstep top`: asks for the job's ranks once an interval, and draws them.
#pragma once

#include "base/error.h"
#include "cli/exit_code.h"
#include "io/loop.h"
#include "top/screen.h"

#include <functional>
#include <string>

namespace lockstep::cli {

struct TopViewRequest {
  std::string word;  // names the job for commands of this program
  top::Sort sort = top::Sort::rank;
  std::optional<int> rank = {};
  io::Duration interval = std::chrono::seconds(1);
  // Returns the last words about a job that has ended. "": it goes on, as far as this machine knows
  // without asking another one.
  std::function<std::string(const top::JobRows&)> end_of = {};
};

// Returns 0 after q, or when the job has ended, and 128 + N after signal N. Call with the handled
// signals blocked, on a terminal.
Result<ExitCode> view_top(TopViewRequest request);

}  // namespace lockstep::cli
