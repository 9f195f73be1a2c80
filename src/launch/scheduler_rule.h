// Reads the job's nodes from the variables of the scheduler that started this process. Trusts them
// only if the scheduler started a process on each node. A batch script or an interactive shell is
// the only process of its job, and would wait for other nodes in vain.
#pragma once

#include "base/error.h"
#include "launch/facts.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::launch {

struct Placement {
  std::string scheduler;  // "Slurm", "Open MPI", "PMI", "Kubernetes"
  std::string job;        // for people: "step 123.0"; may be empty
  int nodes = 1;
  bool one_task_per_node = true;
  int node_rank = 0;
  std::vector<std::string> hosts;  // names of all nodes; empty: unknown
  std::string host;                // where nodes meet, equal on every node; empty: unknown
  int port = 0;                    // equal on every node
  std::string run_id;              // empty: none

  std::string nodes_from;  // names of the variables
  std::string node_rank_from;
  std::string host_from;
};

// Returns the placement; nullopt: no scheduler, or this process is not a task. Errors:
// invalid_input (contradicting variables).
Result<std::optional<Placement>> read_placement(const Facts& facts);

// Returns the number of nodes of the Slurm job if this process is in the job but not in a step;
// else 1.
int unused_slurm_nodes(const Facts& facts);

}  // namespace lockstep::launch
