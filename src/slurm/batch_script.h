// The batch script of a job: the #SBATCH lines, and one step that starts an agent on every node.
// Pure.
#pragma once

#include "slurm/job_plan.h"

#include <string>
#include <vector>

namespace lockstep::slurm {

struct ScriptFacts {
  std::string version;  // of Lockstep
  std::string binary;   // absolute; what the batch step runs
  std::string carry =
      {};  // sbcast brings it to /tmp of the nodes, with this in its name; empty: no
  bool unless_seen = false;            // Carry::unless_seen
  std::string folder;                  // of the job, absolute, seen by all nodes
  std::string command;                 // what the user asked for, for people
  std::vector<std::string> run;        // the words behind `lockstep run`
  std::vector<std::string> node = {};  // options of slurm-node
};

// The options of slurm-batch that say when the job runs again, with a space before each.
std::string rerun_words(const JobPlan& plan);
// For people. most: as in JobWish::chain.
std::string chain_words(int most);

std::string batch_script(const JobPlan& plan, const ScriptFacts& facts);

}  // namespace lockstep::slurm
