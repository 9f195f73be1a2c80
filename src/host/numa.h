// The CPUs of each worker under --numa-binding. The plan is pure. The facts of the machine are read
// into a Topology first.
#pragma once

#include "base/error.h"

#include <map>
#include <string>
#include <vector>

namespace lockstep::host {

struct Topology {
  std::map<int, std::vector<int>> nodes;  // NUMA node -> its CPUs, sorted
  std::map<int, int> socket_of;           // CPU -> physical package
  std::map<int, int> core_of;             // CPU -> lowest CPU of its physical core
  std::map<int, int> cache_of;            // CPU -> lowest CPU of its last-level cache
};

// Reads the topology. `root` is "" outside of tests. A kernel without NUMA has a single node 0 with
// all CPUs.
Result<Topology> read_topology(const std::string& root);

enum class BindMode {
  node,          // all CPUs of the GPU's NUMA node
  socket,        // all CPUs of all nodes on that node's socket
  exclusive,     // a share of the node's physical cores, one share per GPU of the node
  core_complex,  // the CPUs of one last-level cache; a node's GPUs take these groups in turn
};

struct BindRequest {
  BindMode mode = BindMode::node;
  int local_rank = 0;
  int local_world_size = 1;
  // NUMA node of each visible GPU, by index. -1 (unknown to the kernel) counts as 0. Empty: no
  // GPUs. Local ranks are then spread over the nodes in even blocks.
  std::vector<int> gpu_nodes;
  std::vector<int> allowed;  // CPUs that this process may use
};

// Returns the CPUs of one worker, sorted and never empty. Fails if the node has no usable CPU, or
// too few for its workers.
Result<std::vector<int>> cpus_for_worker(const Topology& topology, const BindRequest& request);

}  // namespace lockstep::host
