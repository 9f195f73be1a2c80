// scancel: argv.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::slurm {

// Ends a job: SIGTERM to all of it, SIGKILL after KillWait. With a signal ("USR1") only that is
// sent, to the steps, not to the batch script.
std::vector<std::string> scancel_command(const std::string& id,
                                         const std::optional<std::string>& signal = {});

}  // namespace lockstep::slurm
