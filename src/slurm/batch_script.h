// Writes the batch script of a job: the #SBATCH lines, and one exec of slurm-batch whose step
// starts an agent on every node. Pure.
#pragma once

#include "slurm/job_plan.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::slurm {

struct ScriptFacts {
  std::string version;  // of Lockstep
  std::string binary;   // absolute path that the batch step runs
  // Random part of the binary's name in the nodes' /tmp, where sbcast puts a copy. Empty: no copy.
  std::string carry = {};
  bool unless_seen = false;  // Carry::unless_seen
  std::string folder;        // of the job; absolute, on a file system that all nodes mount
  // Of a sweep: the row of the array's task 0, unless the script's argument says another.
  std::optional<std::size_t> first_row = {};
  std::string command;                 // the user's command line, for a comment in the script
  std::vector<std::string> run;        // the words behind `lockstep run`
  std::vector<std::string> node = {};  // options of slurm-node
};

// Returns the options of slurm-batch that control reruns, with a space before each.
std::string rerun_words(const JobPlan& plan);
// Returns a sentence for people about a chain. most: as in JobWish::chain.
std::string chain_words(int most);

// Returns the script's text. plan: from plan_job().
std::string batch_script(const JobPlan& plan, const ScriptFacts& facts);

}  // namespace lockstep::slurm
