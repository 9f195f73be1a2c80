// What the scheduler that started this process says about the job's nodes, read from its variables.
// Only where this process is one of several, one on each node: in a batch script or an interactive
// shell of a job of several nodes the others would never come.
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
  std::string host;                // that takes part on every node's list alike; empty: not known
  int port = 0;                    // the same on every node
  std::string run_id;              // empty: none

  std::string nodes_from;  // the variables
  std::string node_rank_from;
  std::string host_from;
};

// nullopt: no scheduler, or this is none of its tasks. An Error: its variables make no sense.
Result<std::optional<Placement>> read_placement(const Facts& facts);

// Not a task, but inside a Slurm job of several nodes: how many. Else 1.
int unused_slurm_nodes(const Facts& facts);

}  // namespace lockstep::launch
