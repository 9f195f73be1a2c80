// A report about a Slurm job, from any of Slurm's programs.
#pragma once

#include "base/error.h"
#include "slurm/job_state.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

using Moment = std::optional<std::int64_t>;  // Unix seconds; nullopt: Slurm does not know (yet)

struct JobReport {
  std::string id;   // as squeue shows it: "12", "12_3" (of an array), "12_[4-9]", "12+1"
  std::string job;  // id of the whole array or heterogeneous job, else the same as id
  std::string name;
  std::string user;
  SlurmState state;
  std::string reason;      // Slurm's word; empty: none
  std::string dependency;  // unfulfilled part: "afterok:11(unfulfilled)"
  std::string partition;   // a comma separates alternatives
  std::string account;
  std::string qos;
  std::string nodes;       // Slurm's list, for codec::expand_nodelist(); empty before the start
  std::string held_nodes;  // nodes on which the start is planned
  std::string excluded_nodes;
  std::optional<int> node_count;
  std::optional<int> exit_code;  // known for ended jobs only
  std::optional<int> signal;     // signal that ended the batch script; 0: none
  std::optional<int> restarts;   // nullopt: squeue and sacct do not tell
  std::optional<std::int64_t> priority;
  std::optional<std::int64_t> time_limit;  // seconds; nullopt: unlimited or unknown
  Moment submitted;                        // for the present run: a requeue renews the time
  Moment eligible;
  Moment start;  // of a waiting job: expected start
  Moment end;    // of a running job: end of its time limit
  std::string folder;
  std::string output;     // file of standard output
  std::string resources;  // requested or allocated: "cpu=32,mem=3200M,node=4"
  std::string gpus;       // requested per node: "gres:gpu:2"
};

// Returns whether a text is exactly "12", "12_3" or "12+1". Check ids before they become arguments
// of Slurm's programs.
bool is_job_id(std::string_view text);
// Returns the id of the whole array or heterogeneous job: "12" for "12_3".
std::string_view whole_job(std::string_view id);

}  // namespace lockstep::slurm
