// Reads the topology and plans CPUs with PyTorch's rules for --numa-binding.
#include "host/numa.h"

#include "base/text.h"
#include "host/cpus.h"
#include "host/sysfs.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

namespace lockstep::host {
namespace {

Result<std::vector<int>> read_cpus(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return fail(Errc::not_found, "cannot read " + path);
  return parse_cpu_list(*text);
}

int first_of(const std::string& path, int fallback) {
  const auto cpus = read_cpus(path);
  return cpus && !cpus->empty() ? cpus->front() : fallback;
}

// Returns the lowest CPU that shares this CPU's last-level data cache. -1: unknown.
int last_level_cache(const std::string& cpu_dir) {
  int best_level = 0;
  int group = -1;
  for (const int index : list_numbered(cpu_dir + "/cache", "index")) {
    const std::string dir = fmt::format("{}/cache/index{}", cpu_dir, index);
    // Only data caches and unified ones count.
    if (read_text(dir + "/type") == "Instruction") continue;
    const int level = read_number(dir + "/level").value_or(0);
    if (level <= best_level) continue;
    best_level = level;
    group = first_of(dir + "/shared_cpu_list", -1);
  }
  return group;
}

void read_cpu(const std::string& root, int cpu, int first_of_node, Topology& topology) {
  const std::string dir = fmt::format("{}/sys/devices/system/cpu/cpu{}", root, cpu);
  topology.socket_of[cpu] = read_number(dir + "/topology/physical_package_id").value_or(0);
  // core_cpus_list is the newer name of thread_siblings_list.
  const int siblings = first_of(dir + "/topology/thread_siblings_list", cpu);
  topology.core_of[cpu] = first_of(dir + "/topology/core_cpus_list", siblings);
  const int cache = last_level_cache(dir);
  // Without information about caches the node counts as one group.
  topology.cache_of[cpu] = cache >= 0 ? cache : first_of_node;
}

using Groups = std::map<int, std::vector<int>>;

Groups group_by(const std::vector<int>& cpus, const std::map<int, int>& key_of) {
  Groups groups;
  for (const int cpu : cpus) {
    const auto key = key_of.find(cpu);
    groups[key == key_of.end() ? cpu : key->second].push_back(cpu);
  }
  return groups;
}

class Plan {
 public:
  Plan(const Topology& topology, const BindRequest& request)
      : topology_(topology),
        request_(request),
        allowed_(request.allowed.begin(), request.allowed.end()) {}

  Result<std::vector<int>> run() {
    LOCKSTEP_TRY(assign_nodes());
    const int node = node_of_rank_[static_cast<std::size_t>(request_.local_rank)];
    if (usable(node).empty())
      return fail(
          Errc::invalid_input,
          fmt::format("--numa-binding: none of NUMA node {}'s CPUs may be used by this process",
                      node),
          "widen the CPU set this process is started with (taskset, cgroup, scheduler)");
    switch (request_.mode) {
      case BindMode::node:
        return usable(node);
      case BindMode::socket:
        return socket(node);
      case BindMode::exclusive:
        return exclusive(node);
      case BindMode::core_complex:
        return core_complex(node);
    }
    return fail(Errc::internal, "unknown NUMA binding");
  }

 private:
  std::vector<int> usable(int node) const {
    std::vector<int> cpus;
    const auto found = topology_.nodes.find(node);
    if (found == topology_.nodes.end()) return cpus;
    std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(cpus),
                 [&](int cpu) { return allowed_.contains(cpu); });
    return cpus;
  }

  // Assigns a NUMA node to each device: that of its GPU. Without GPUs, assumes one device per local
  // rank.
  Status assign_nodes() {
    const int devices = request_.gpu_nodes.empty() ? request_.local_world_size
                                                   : static_cast<int>(request_.gpu_nodes.size());
    if (request_.local_rank < 0 || request_.local_rank >= devices)
      return fail(Errc::invalid_input,
                  fmt::format("--numa-binding: local rank {} has no GPU of its own ({} visible)",
                              request_.local_rank, devices),
                  "start at most one worker per visible GPU, or leave out --numa-binding");
    for (const int node : request_.gpu_nodes)
      // -1: the kernel does not know the node.
      node_of_rank_.push_back(std::max(node, 0));
    if (!request_.gpu_nodes.empty()) return {};
    std::vector<int> nodes;
    for (const auto& [node, cpus] : topology_.nodes)
      if (!usable(node).empty()) nodes.push_back(node);
    if (nodes.empty())
      return fail(Errc::not_found, "--numa-binding: no NUMA node has a CPU this process may use");
    const std::size_t ranks = static_cast<std::size_t>(devices);
    for (std::size_t rank = 0; rank < ranks; ++rank)
      // Even blocks: neighbouring ranks share a node.
      node_of_rank_.push_back(nodes[rank * nodes.size() / ranks]);
    return {};
  }

  // Returns {index of this rank's device among the devices of its node, number of these devices}.
  std::pair<std::size_t, std::size_t> place_on(int node) const {
    const auto end = node_of_rank_.begin() + request_.local_rank;
    return {static_cast<std::size_t>(std::count(node_of_rank_.begin(), end, node)),
            static_cast<std::size_t>(std::count(node_of_rank_.begin(), node_of_rank_.end(), node))};
  }

  std::optional<int> socket_of_node(int node) const {
    const auto cpus = usable(node);
    if (cpus.empty()) return std::nullopt;
    // All CPUs of a node are on one socket.
    const auto found = topology_.socket_of.find(cpus.front());
    return found == topology_.socket_of.end() ? 0 : found->second;
  }

  std::vector<int> socket(int node) const {
    std::vector<int> result;
    for (const auto& [other, cpus] : topology_.nodes) {
      if (socket_of_node(other) != socket_of_node(node)) continue;
      const auto more = usable(other);
      result.insert(result.end(), more.begin(), more.end());
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  Result<std::vector<int>> exclusive(int node) const {
    const Groups cores = group_by(usable(node), topology_.core_of);
    const auto [place, devices] = place_on(node);
    const std::size_t share = cores.size() / devices;
    const std::size_t spare = cores.size() % devices;  // the first devices get one more core each
    if (share == 0)
      return fail(
          Errc::invalid_input,
          fmt::format("--numa-binding=exclusive: NUMA node {} has {} physical cores for {} workers",
                      node, cores.size(), devices),
          "use --numa-binding=node");
    const std::size_t begin = place * share + std::min(place, spare);
    const std::size_t end = begin + share + (place < spare ? 1 : 0);
    std::vector<int> result;
    std::size_t index = 0;
    for (const auto& [core, cpus] : cores) {
      if (index >= begin && index < end) result.insert(result.end(), cpus.begin(), cpus.end());
      ++index;
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  // Orders groups as torch does: larger ones first, then by number.
  std::vector<int> core_complex(int node) const {
    std::vector<std::vector<int>> groups;
    for (auto& [cache, cpus] : group_by(usable(node), topology_.cache_of))
      groups.push_back(cpus);
    std::stable_sort(groups.begin(), groups.end(),
                     [](const auto& a, const auto& b) { return a.size() > b.size(); });
    return groups[place_on(node).first % groups.size()];
  }

  const Topology& topology_;
  const BindRequest& request_;
  std::set<int> allowed_;
  std::vector<int> node_of_rank_;
};

}  // namespace

Result<Topology> read_topology(const std::string& root) {
  Topology topology;
  const std::string nodes = root + "/sys/devices/system/node";
  for (const int node : list_numbered(nodes, "node")) {
    LOCKSTEP_TRY_ASSIGN(topology.nodes[node],
                        read_cpus(fmt::format("{}/node{}/cpulist", nodes, node)));
  }
  // A kernel built without NUMA has no node folders.
  if (topology.nodes.empty()) {
    LOCKSTEP_TRY_ASSIGN(topology.nodes[0], read_cpus(root + "/sys/devices/system/cpu/online"));
  }
  for (const auto& [node, cpus] : topology.nodes)
    for (const int cpu : cpus)
      read_cpu(root, cpu, cpus.front(), topology);
  return topology;
}

Result<std::vector<int>> cpus_for_worker(const Topology& topology, const BindRequest& request) {
  return Plan(topology, request).run();
}

}  // namespace lockstep::host
