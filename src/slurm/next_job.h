// The successor of a job whose time limit is over, for clusters that do not queue the same job
// again: a new job with the same script, folder and output file. Pure.
#pragma once

#include "base/error.h"
#include "slurm/sbatch_options.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

inline constexpr const char* kNextJobFile = "next.json";

// How sbatch was called for the first job; stored as next.json in the job's folder.
struct NextJob {
  std::vector<std::string> words = {};      // options of sbatch
  std::vector<std::string> arguments = {};  // arguments of the script

  bool operator==(const NextJob&) const = default;
};
// Keeps the settings that sbatch got outside the script. Drops --hold.
NextJob next_job_of(const std::vector<Setting>& settings, std::vector<std::string> arguments);
std::string next_job_text(const NextJob& job);
Result<NextJob> next_job_from_text(std::string_view text);

struct NextFacts {
  std::string job;            // Slurm's id of the ending job
  std::string script;         // path of the script
  std::string folder;         // working folder
  std::string output = {};    // output file of the ending job; empty: none
  std::string left_out = {};  // Slurm's list of nodes to exclude
};
// Returns the sbatch call for the successor. The successor starts after `facts.job` has ended.
// sbatch prints "ID" or "ID;CLUSTER".
std::vector<std::string> next_job_command(const NextJob& job, const NextFacts& facts);

// Returns `own` without Slurm's variables of the ending job, some of which sbatch would apply to
// the new job.
std::vector<std::string> environment_of_next(const std::vector<std::string>& own);

// Returns the job id in the output of `sbatch --parsable`; empty: no id found.
std::string submitted_job(std::string_view printed);

}  // namespace lockstep::slurm
