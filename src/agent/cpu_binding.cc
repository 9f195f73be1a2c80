// Translates --numa-binding into requests to host/numa.h.
#include "agent/cpu_binding.h"

#include "host/cpus.h"
#include "host/gpus.h"
#include "host/numa.h"
#include "proc/helper_output.h"

#include <algorithm>
#include <iterator>

namespace lockstep::agent {
namespace {

host::BindMode bind_mode(launch::NumaBinding mode) {
  switch (mode) {
    case launch::NumaBinding::socket:
      return host::BindMode::socket;
    case launch::NumaBinding::exclusive:
      return host::BindMode::exclusive;
    case launch::NumaBinding::core_complex:
      return host::BindMode::core_complex;
    case launch::NumaBinding::node:
    case launch::NumaBinding::none:
      break;
  }
  return host::BindMode::node;
}

}  // namespace

Result<std::vector<std::vector<int>>> plan_cpu_binding(launch::NumaBinding mode, int nproc) {
  std::vector<std::vector<int>> plan(static_cast<std::size_t>(nproc));
  if (mode == launch::NumaBinding::none) return plan;
  LOCKSTEP_TRY_ASSIGN(const host::Topology topology, host::read_topology(""));
  host::BindRequest request;
  request.mode = bind_mode(mode);
  request.local_world_size = nproc;
  LOCKSTEP_TRY_ASSIGN(request.allowed, host::allowed_cpus());
  // The device's NUMA node decides, so the GPUs are read as the workers will see them
  // (CUDA_VISIBLE_DEVICES applies).
  const auto gpus = host::visible_cuda_gpus("", host::gpu_environment(), proc::helper_output);
  std::transform(gpus.begin(), gpus.end(), std::back_inserter(request.gpu_nodes),
                 [](const host::Gpu& gpu) { return gpu.numa_node; });
  for (int local_rank = 0; local_rank < nproc; ++local_rank) {
    request.local_rank = local_rank;
    LOCKSTEP_TRY_ASSIGN(plan[static_cast<std::size_t>(local_rank)],
                        host::cpus_for_worker(topology, request));
  }
  return plan;
}

}  // namespace lockstep::agent
