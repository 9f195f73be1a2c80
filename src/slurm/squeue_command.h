// squeue: argv and what it prints.
#pragma once

#include "slurm/job_status.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// These jobs, or with no ids all jobs of that user; those that have ended too, as long as the
// controller remembers them.
std::vector<std::string> squeue_command(std::span<const std::string> ids);
std::vector<std::string> squeue_of_user_command(const std::string& user);

// Which job has which script, of all jobs of that user (a name or a number).
std::vector<std::string> squeue_scripts_command(const std::string& user);
// The newest job whose script lies there; empty: none.
std::string job_of_script(std::string_view text, std::string_view script);

// Lines that make no sense are left out. What squeue does not tell: exit codes, restarts.
std::vector<JobStatus> parse_squeue(std::string_view text);

}  // namespace lockstep::slurm
