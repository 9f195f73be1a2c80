#include "slurm/wheel_step.h"

#include "base/text.h"
#include "setup/gpu_table.h"
#include "setup/toolchain.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

namespace lockstep::slurm {
namespace {

constexpr int kMostCpus = 16;
// Seconds that srun waits for free nodes. The caller then asks fewer nodes.
constexpr int kPatienceS = 8;
constexpr int kAskMinutes = 2;

// Options that say where a job may run and on whose account. The question must reach all nodes of
// the partition, so --nodelist is left out even if the user names a node to build on.
constexpr std::array<std::string_view, 7> kWhere = {
    "partition", "account", "qos", "reservation", "exclude", "constraint", "clusters"};

bool says_where(std::string_view name) {
  return std::find(kWhere.begin(), kWhere.end(), name) != kWhere.end();
}

void add_binary(std::vector<std::string>& argv, const StepBinary& binary) {
  // SLURM_BCAST, set by the caller, makes srun copy the binary.
  if (!binary.carry.empty()) argv.emplace_back("--compress");
  argv.push_back(binary.path);
}

}  // namespace

WheelNodes wheel_nodes(const std::vector<Setting>& settings, const std::vector<NodeGroup>& groups) {
  WheelNodes found;
  const Setting* wanted = find_setting(settings, "partition");
  std::vector<std::string> names;
  if (wanted != nullptr) names = split(wanted->value, ',');
  std::set<int> capabilities;
  std::set<std::string> unknown;
  for (const NodeGroup& group : groups) {
    const bool ours = wanted == nullptr
                          ? group.is_default
                          : std::find(names.begin(), names.end(), group.partition) != names.end();
    if (!ours || !group.up || !is_in_service(group.state)) continue;
    found.partition = group.partition;
    found.nodes += group.count;
    if (group.state == "idle") found.idle += group.count;
    if (group.state == "mixed") found.mixed += group.count;
    found.cpus = found.cpus == 0 ? group.cpus : std::min(found.cpus, group.cpus);
    for (const GpuKind& gpu : group.gpus) {
      const int capability = setup::capability_of(gpu.type);
      if (capability > 0)
        capabilities.insert(capability);
      else
        unknown.insert(gpu.type.empty() ? "gpu" : gpu.type);
    }
  }
  std::vector<setup::Arch> archs;
  archs.reserve(capabilities.size());
  for (const int each : capabilities)
    archs.push_back({each});
  if (unknown.empty()) found.arch = setup::archs_text(archs);
  found.unknown.assign(unknown.begin(), unknown.end());
  return found;
}

std::vector<int> ask_counts(const WheelNodes& nodes) {
  std::vector<int> counts;
  // Mixed nodes may have no room left, so fall back to idle ones.
  for (const int each : {nodes.idle + nodes.mixed, nodes.idle, 1})
    if (each > 0 && std::find(counts.begin(), counts.end(), each) == counts.end())
      counts.push_back(each);
  return counts;
}

std::vector<std::string> ask_step(const std::vector<Setting>& settings, int count,
                                  const StepBinary& binary) {
  std::vector<std::string> argv = {"srun",
                                   fmt::format("--nodes={}", count),
                                   fmt::format("--ntasks={}", count),
                                   "--ntasks-per-node=1",
                                   "--cpus-per-task=1",
                                   "--mem-per-cpu=10",
                                   fmt::format("--immediate={}", kPatienceS),
                                   fmt::format("--time={}", kAskMinutes),
                                   "--job-name=lockstep-wheel",
                                   "--input=none",
                                   "--quit-on-interrupt",
                                   "--quiet"};
  for (const Setting& each : settings)
    if (says_where(each.name)) argv.push_back(word_of(each));
  add_binary(argv, binary);
  argv.emplace_back("host-ability");
  return argv;
}

std::vector<std::string> build_step(const std::vector<Setting>& settings, const WheelNodes& nodes,
                                    const StepBinary& binary,
                                    const std::vector<std::string>& words) {
  std::vector<std::string> argv = {"srun", "--nodes=1", "--ntasks=1"};
  if (find_setting(settings, "cpus-per-task") == nullptr && nodes.cpus > 0)
    argv.push_back(fmt::format("--cpus-per-task={}", std::min(nodes.cpus, kMostCpus)));
  for (const char* word :
       {"--job-name=lockstep-wheel", "--input=none", "--quit-on-interrupt", "--quiet"})
    argv.emplace_back(word);
  for (const Setting& each : settings)
    argv.push_back(word_of(each));
  add_binary(argv, binary);
  argv.insert(argv.end(), words.begin(), words.end());
  return argv;
}

}  // namespace lockstep::slurm
