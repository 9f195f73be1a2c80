// Prints Slurm's values for people.
#pragma once

#include "slurm/job_report.h"

#include <cstdint>
#include <string>

namespace lockstep::slurm {

// Prints a duration in a form that Slurm reads back: "20:00:00", "7-00:00:00".
std::string duration_text(std::int64_t seconds);

// Prints a moment in this machine's time zone: "2026-11-22 19:07:38".
std::string moment_text(std::int64_t unix_seconds);

std::string nodes_text(int count);  // "1 node", "4 nodes"

}  // namespace lockstep::slurm
