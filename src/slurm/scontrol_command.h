// scontrol: its argv, and the parser of its --oneliner output.
#pragma once

#include "slurm/job_report.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// Asks about one job, or about each part of an array or heterogeneous job. The controller forgets
// ended jobs after MinJobAge (default 300 s).
std::vector<std::string> scontrol_job_command(const std::string& id);

// Skips lines that do not parse.
std::vector<JobReport> parse_scontrol_jobs(std::string_view text);

// Returns the value behind " Key=" up to the next space. The first occurrence counts. Empty: no
// such key, or one of Slurm's words for nothing.
std::string oneline_value(std::string_view line, std::string_view key);
// The same, up to the next " Key=", for values with spaces.
std::string oneline_text(std::string_view line, std::string_view key);

// The cause that ends the processes of a stopped job.
enum class StoppedBy {
  nobody,      // nothing: the job still runs, and its processes end by themselves
  time_limit,  // Slurm, at the time limit
  preemption,  // Slurm, now or soon, for another job
  somebody,    // scancel, or Slurm for another reason
};
// Reads the answer from a line of `scontrol show job`.
StoppedBy stopped_by(std::string_view line);

// Returns whether Slurm of this version requeues a job that ends after the notice of preemption.
// Older versions treat such an end as the job's own. version: "slurm-wlm 24.11.5", as `scontrol
// --version` prints.
bool queues_again_what_ends_preempted(std::string_view version);

}  // namespace lockstep::slurm
