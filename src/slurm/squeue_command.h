// squeue: its argv, and the parser of its output.
#pragma once

#include "slurm/job_report.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// Asks about some jobs, including ended ones that the controller still remembers.
std::vector<std::string> squeue_command(std::span<const std::string> ids);

// Asks which job has which script, for all jobs of a user (name or number).
std::vector<std::string> squeue_scripts_command(const std::string& user);
// Returns the newest job with this command, which is a script's path and perhaps its first
// arguments; empty: none.
std::string job_of_script(std::string_view text, std::string_view command);

// Skips lines that do not parse. squeue tells neither exit codes nor restarts.
std::vector<JobReport> parse_squeue(std::string_view text);

}  // namespace lockstep::slurm
