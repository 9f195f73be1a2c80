// sacct: its argv, and the parser of its output. Many clusters have no accounting.
#pragma once

#include "slurm/job_report.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// Asks for the latest job with each id, without its steps.
std::vector<std::string> sacct_command(std::span<const std::string> ids);

// Skips lines that do not parse.
std::vector<JobReport> parse_sacct(std::string_view text);

}  // namespace lockstep::slurm
