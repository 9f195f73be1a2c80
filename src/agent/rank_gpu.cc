#include "agent/rank_gpu.h"

#include "base/text.h"
#include "host/gpu_visible.h"

#include <string>

namespace lockstep::agent {
namespace {

std::optional<std::string> variable(const Environment& env, const char* name) {
  const auto found = env.find(name);
  return found == env.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::vector<host::Gpu> gpus_seen_by(const Environment& env, const std::vector<host::Gpu>& gpus) {
  if (gpus.empty()) return {};
  if (gpus.front().vendor == host::GpuVendor::nvidia)
    return host::choose_nvidia(gpus, variable(env, "CUDA_VISIBLE_DEVICES"));
  return host::choose_amd(gpus, {.cuda_visible_devices = variable(env, "CUDA_VISIBLE_DEVICES"),
                                 .hip_visible_devices = variable(env, "HIP_VISIBLE_DEVICES"),
                                 .rocr_visible_devices = variable(env, "ROCR_VISIBLE_DEVICES")});
}

std::optional<host::Gpu> gpu_of_rank(const Environment& env, const std::vector<host::Gpu>& gpus) {
  const std::vector<host::Gpu> seen = gpus_seen_by(env, gpus);
  if (seen.size() == 1) return seen.front();
  const auto local_rank = parse_int(variable(env, "LOCAL_RANK").value_or(""));
  if (!local_rank || *local_rank < 0) return std::nullopt;
  const auto at = static_cast<std::size_t>(*local_rank);
  return at < seen.size() ? std::optional(seen[at]) : std::nullopt;
}

}  // namespace lockstep::agent
