// scancel: its argv.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::slurm {

// Returns the call that ends a job: SIGTERM to all processes, SIGKILL after KillWait. With a signal
// ("USR1"): sends only that, to the steps but not to the batch script.
std::vector<std::string> scancel_command(const std::string& id,
                                         const std::optional<std::string>& signal = {});

}  // namespace lockstep::slurm
