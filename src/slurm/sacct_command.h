// sacct: argv and what it prints. Many clusters have no accounting.
#pragma once

#include "slurm/job_status.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// The latest job of each id; steps are left out.
std::vector<std::string> sacct_command(std::span<const std::string> ids);

// Lines that make no sense are left out.
std::vector<JobStatus> parse_sacct(std::string_view text);

}  // namespace lockstep::slurm
