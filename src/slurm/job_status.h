// What is known of a job of Slurm's, whichever of its programs said so.
#pragma once

#include "base/error.h"
#include "slurm/job_state.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

using Moment = std::optional<std::int64_t>;  // Unix seconds; Slurm may not know it (yet)

struct JobStatus {
  std::string id;   // as squeue shows it: "12", "12_3" (of an array), "12_[4-9]", "12+1"
  std::string job;  // the id of the whole array or heterogeneous job, else the same as id
  std::string name;
  std::string user;
  JobState state;
  std::string reason;      // Slurm's word; empty: none
  std::string dependency;  // what is left of it: "afterok:11(unfulfilled)"
  std::string partition;   // several that the job may run in are separated by commas
  std::string account;
  std::string qos;
  std::string nodes;       // Slurm's list, for codec::expand_nodelist(); empty before the start
  std::string held_nodes;  // where it is planned to start
  std::string excluded_nodes;
  std::optional<int> node_count;
  std::optional<int> exit_code;  // only known of ended jobs
  std::optional<int> signal;     // that ended the batch script; 0: none
  std::optional<int> restarts;   // nullopt: the program that was asked does not tell
  std::optional<std::int64_t> priority;
  std::optional<std::int64_t> time_limit;  // seconds; nullopt: unlimited or not known
  Moment submitted;                        // of the present run: a requeue renews it
  Moment eligible;
  Moment start;  // while it waits: when it is expected to start
  Moment end;    // while it runs: when its time is up
  std::string folder;
  std::string output;     // the file of its standard output
  std::string resources;  // what it asked for and was given: "cpu=32,mem=3200M,node=4"
  std::string gpus;       // per node, as asked for: "gres:gpu:2"
};

// "12", "12_3" or "12+1", and nothing else: it becomes a word of Slurm's programs.
bool is_job_id(std::string_view text);
// The array's or heterogeneous job's own id: "12" of "12_3".
std::string_view whole_job(std::string_view id);

}  // namespace lockstep::slurm
