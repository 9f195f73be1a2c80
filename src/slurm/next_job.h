// The job that goes on in the place of one whose time is up, where Slurm does not queue that one
// again: the same script, the same folder, the same file of output. Pure.
#pragma once

#include "base/error.h"
#include "slurm/sbatch_options.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

inline constexpr const char* kNextJobFile = "next.json";

// How sbatch was called for the first job; that file of its folder.
struct NextJob {
  std::vector<std::string> words = {};      // options
  std::vector<std::string> arguments = {};  // of the script

  bool operator==(const NextJob&) const = default;
};
// Of the settings those that sbatch is given beside the script.
NextJob next_job_of(const std::vector<Setting>& settings, std::vector<std::string> arguments);
std::string next_job_text(const NextJob& job);
Result<NextJob> next_job_from_text(std::string_view text);

struct NextFacts {
  std::string job;            // Slurm's id of the one that ends
  std::string script;         // its file
  std::string folder;         // where it runs
  std::string output = {};    // the file that it has written into; empty: there is none
  std::string left_out = {};  // Slurm's list of the nodes that it is not to have
};
// It starts when the other has ended. It prints "ID" or "ID;CLUSTER".
std::vector<std::string> next_job_command(const NextJob& job, const NextFacts& facts);

// Without what Slurm has said of the job that ends: the new one would take some of it for its own.
std::vector<std::string> environment_of_next(const std::vector<std::string>& own);

// "12" of what `sbatch --parsable` prints; empty: nothing that is a job.
std::string submitted_job(std::string_view printed);

}  // namespace lockstep::slurm
