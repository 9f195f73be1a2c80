// --numa-binding: which CPUs the worker with local rank k may use. The plan is pure; what it needs
// of the machine is read into a Topology first.
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

// `root` is "" except in tests. A kernel without NUMA has one node 0 with all CPUs.
Result<Topology> read_topology(const std::string& root);

enum class BindMode {
  node,          // all CPUs of the GPU's NUMA node
  socket,        // all CPUs of all nodes on that node's socket
  exclusive,     // a share of the node's physical cores, one share per GPU of the node
  core_complex,  // the CPUs under one last-level cache; GPUs of a node take these groups in turn
};

struct BindRequest {
  BindMode mode = BindMode::node;
  int local_rank = 0;
  int local_world_size = 1;
  // NUMA node of each visible GPU, by index; -1 (the kernel does not know) counts as 0. Empty: a
  // machine without GPUs, where local ranks are spread over the nodes in even blocks instead.
  std::vector<int> gpu_nodes;
  std::vector<int> allowed;  // CPUs this process may use
};

// Sorted, never empty.
Result<std::vector<int>> cpus_for_worker(const Topology& topology, const BindRequest& request);

}  // namespace lockstep::host
