// scontrol: argv and what it prints with --oneliner.
#pragma once

#include "slurm/job_status.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// One job; of an array or a heterogeneous job, each part of it. The controller forgets ended jobs
// after MinJobAge (300 s).
std::vector<std::string> scontrol_job_command(const std::string& id);

// Lines that make no sense are left out.
std::vector<JobStatus> parse_scontrol_jobs(std::string_view text);

// The value behind " Key=" in such a line, up to the next space; of several the first counts.
// Empty: it is not there, or Slurm's way of saying nothing stands there.
std::string oneline_value(std::string_view line, std::string_view key);
// The same, up to the next " Key=": for values that have spaces in them.
std::string oneline_text(std::string_view line, std::string_view key);

// Who ends the processes of a job that has been told to stop, by what scontrol prints of it.
enum class StoppedBy {
  nobody,      // it runs: they end by themselves, or the job's own process does it
  time_limit,  // Slurm, as its time is up
  preemption,  // Slurm, for another job; or it is about to
  somebody,    // scancel, or Slurm for a reason of another kind
};
StoppedBy stopped_by(std::string_view line);

// "slurm-wlm 24.11.5", as `scontrol --version` has it: whether a job that ends once it was told
// that it is preempted is queued again by Slurm. Older ones take it for a job that has ended by
// itself.
bool queues_again_what_ends_preempted(std::string_view version);

}  // namespace lockstep::slurm
