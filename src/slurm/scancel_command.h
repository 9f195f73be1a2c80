// scancel: its argv, and the meaning of its refusal.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::slurm {

// Returns the call that ends a job: SIGTERM to all processes, SIGKILL after KillWait. With a signal
// ("USR1"): sends only that, to the steps but not to the batch script.
std::vector<std::string> scancel_command(const std::string& id,
                                         const std::optional<std::string>& signal = {});

// Returns whether scancel refused because the job has ended, or Slurm no longer knows it. error: of
// ask_tool(). The exit code does not tell.
bool is_of_ended_job(const Error& error);

}  // namespace lockstep::slurm
