// What the scheduler that started this process says about the job's nodes, read from its variables.
// It is believed only where the scheduler started one process on each node. A batch script or an
// interactive shell is the only process of its job: it would wait for the other nodes in vain.
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
  std::vector<std::string> hosts;  // all nodes' names; empty: not known
  std::string host;                // a place to meet, the same on every node; empty: not known
  int port = 0;                    // the same on every node
  std::string run_id;              // empty: none

  std::string nodes_from;  // the variables
  std::string node_rank_from;
  std::string host_from;
};

// nullopt: no scheduler, or this is none of its tasks. An Error: its variables make no sense.
Result<std::optional<Placement>> read_placement(const Facts& facts);

// The number of nodes of the Slurm job where this process is in one without being a task; else 1.
int unused_slurm_nodes(const Facts& facts);

}  // namespace lockstep::launch
