// Plans what sbatch and srun are asked for: one task per node, the agent, which starts the node's
// ranks. Converts the user's counts of tasks, CPUs and GPUs accordingly. Pure.
#pragma once

#include "base/error.h"
#include "slurm/sbatch_options.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::slurm {

struct JobWish {
  std::vector<Setting> settings;  // the user's sbatch options; a script's options come first
  int spares = 0;                 // spare nodes in addition to the user's number
  std::string folder;             // folder in which sbatch is called
  std::string name;               // job name unless the user gives one
  // Continue the job after its time limit, at most this often; 0: without limit; nullopt: never.
  std::optional<int> chain = {};
  // The job runs a user's own script. Keep the counts of tasks, CPUs and GPUs, because the script
  // reads them in its environment.
  bool old_script = false;
  // The value of --array, of a sweep or a user's own script; empty: not an array.
  std::string array = {};
  // The rows of a sweep need several such arrays, whose tasks have the same numbers.
  bool several_arrays = false;
};

struct JobPlan {
  std::vector<Setting> settings;  // for sbatch; each name occurs once
  std::optional<int> nodes;       // nodes that train; nullopt: all allocated nodes
  int spares = 0;
  int workers = 1;                // ranks per node
  std::optional<int> cpus;        // CPUs of the one task per node
  std::string output;             // pattern of the job's output file
  std::optional<int> lead_s;      // seconds between the signal to the batch step and the time limit
  bool requeue = false;           // the job may run again
  std::optional<int> chain = {};  // as in JobWish
  std::vector<std::string> notes;  // for people: each change and its reason
};

// Plans a job. Errors: invalid_input names the options that conflict.
Result<JobPlan> plan_job(const JobWish& wish);

// Expands a pattern of --output as sbatch does: %j, %x, %u, %A, %n and the like. Returns nullopt
// for patterns that only the first node can fill in (%N). job: the id, as a number.
struct PatternFacts {
  std::string job;
  std::string name;
  std::string user;
};
std::optional<std::string> expand_output(std::string_view pattern, const PatternFacts& facts);

}  // namespace lockstep::slurm
