// Combines the vendors' GPUs with the environment.
#include "host/gpus.h"

#include "base/environment.h"
#include "host/gpu_visible.h"

namespace lockstep::host {
GpuEnvironment gpu_environment() {
  return {env_variable("CUDA_VISIBLE_DEVICES"), env_variable("HIP_VISIBLE_DEVICES"),
          env_variable("ROCR_VISIBLE_DEVICES"), env_variable("ZE_AFFINITY_MASK")};
}

std::vector<Gpu> visible_cuda_gpus(const std::string& root, const GpuEnvironment& env,
                                   const RunCommand& run) {
  const auto& list = env.cuda_visible_devices;
  // Only UUIDs make nvidia-smi worth asking.
  const bool by_name = list && (list->starts_with("GPU-") || list->starts_with("MIG-"));
  const auto nvidia = nvidia_gpus(root, run, by_name);
  // A build of PyTorch supports one of the two vendors. NVIDIA wins if both are here.
  if (!nvidia.empty()) return choose_nvidia(nvidia, env.cuda_visible_devices);
  return choose_amd(amd_gpus(root), env);
}

std::vector<Gpu> visible_xpu_gpus(const std::string& root, const GpuEnvironment& env) {
  return choose_intel(intel_gpus(root), env.ze_affinity_mask);
}

}  // namespace lockstep::host
