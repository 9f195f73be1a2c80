// What sbatch and srun are asked for a job: one task on every node, which is the agent that starts
// the ranks there, whatever number of tasks, CPUs and GPUs the user counted in. Pure.
#pragma once

#include "base/error.h"
#include "slurm/sbatch_options.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::slurm {

struct JobWish {
  std::vector<Setting> settings;  // the user's options of sbatch, those of a script first
  int spares = 0;                 // nodes on top of those that the user asked for
  std::string folder;             // where sbatch is called
  std::string name;               // of the job, if the user gave none
  // At its time limit the job goes on in another run, so often at most; 0: as often as that comes.
  std::optional<int> chain = {};
  // The settings are those of a script that runs as it is: its tasks, CPUs and GPUs stay as they
  // are, because the script reads them in its environment.
  bool old_script = false;
};

struct JobPlan {
  std::vector<Setting> settings;  // for sbatch, each name once
  std::optional<int> nodes;       // that train; nullopt: as many as are allocated
  int spares = 0;
  int workers = 1;                 // on each node
  std::optional<int> cpus;         // of the one task on each node
  std::string output;              // the file of the job's output, as a pattern
  std::optional<int> lead_s;       // the batch step is told so long before the time limit
  bool requeue = false;            // it may run again
  std::optional<int> chain = {};   // as in JobWish
  std::vector<std::string> notes;  // for people: what was changed, and why
};

// invalid_input names the options that do not go together.
Result<JobPlan> plan_job(const JobWish& wish);

// The file that a pattern of --output stands for: %j, %x, %u, %A, %a, %N and the like are filled in
// as sbatch does. job: the id, as a number. Patterns that only the first node can fill in (%N) give
// nullopt.
struct PatternFacts {
  std::string job;
  std::string name;
  std::string user;
};
std::optional<std::string> expand_output(std::string_view pattern, const PatternFacts& facts);

}  // namespace lockstep::slurm
