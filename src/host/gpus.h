// The accelerators of this machine, counted without starting CUDA (which would cost seconds, memory
// and a context): from the driver's files under /proc, /sys and /dev.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::host {

enum class GpuVendor { nvidia, amd, intel };

struct Gpu {
  GpuVendor vendor = GpuVendor::nvidia;
  int index = 0;          // in PCI bus order (CUDA_DEVICE_ORDER=PCI_BUS_ID); kfd's order for AMD
  std::string pci;        // "0000:dc:00.0"; empty if unknown
  int numa_node = -1;     // -1: unknown
  std::string uuid;       // "GPU-…"; empty if unknown
  int mig_instances = 0;  // compute instances this process may use; 0: not split
  std::vector<std::string> mig_uuids;  // known only from nvidia-smi
};

// The variables that choose among GPUs, as they are in the agent's environment.
struct GpuEnvironment {
  std::optional<std::string> cuda_visible_devices = {};
  std::optional<std::string> hip_visible_devices = {};
  std::optional<std::string> rocr_visible_devices = {};
  std::optional<std::string> ze_affinity_mask = {};
};
GpuEnvironment gpu_environment();

// Runs a command and returns its standard output; nullopt if it is not there or fails. It is called
// only when the driver's files leave something open. An empty function runs nothing.
using RunCommand = std::function<std::optional<std::string>(const std::vector<std::string>& argv)>;

// The GPUs in the machine whose device files this process may open, whatever the environment says.
// `root` is "" except in tests. names_wanted: the caller will look for UUIDs, so nvidia-smi is
// worth asking for those that the driver's files leave open.
std::vector<Gpu> nvidia_gpus(const std::string& root, const RunCommand& run, bool names_wanted);
// What the driver calls the GPU there; empty: it does not say.
std::string nvidia_model(const std::string& root, const std::string& pci);
std::vector<Gpu> amd_gpus(const std::string& root);
std::vector<Gpu> intel_gpus(const std::string& root);

// The GPUs a worker will see, in its order: index i is torch.device("cuda:i").
// cuda: NVIDIA's, or else AMD's (torch calls both cuda). xpu: Intel's.
std::vector<Gpu> visible_cuda_gpus(const std::string& root, const GpuEnvironment& env,
                                   const RunCommand& run);
std::vector<Gpu> visible_xpu_gpus(const std::string& root, const GpuEnvironment& env);

}  // namespace lockstep::host
