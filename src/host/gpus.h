// The accelerators of this machine, read from the driver's files under /proc, /sys and /dev.
// Starting CUDA to count them would cost seconds, memory and a context.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::host {

enum class GpuVendor { nvidia, amd, intel };

struct Gpu {
  GpuVendor vendor = GpuVendor::nvidia;
  int index = 0;          // in PCI bus order (CUDA_DEVICE_ORDER=PCI_BUS_ID); AMD: in kfd's order
  std::string pci = {};   // "0000:dc:00.0"; empty if unknown
  int numa_node = -1;     // -1: unknown
  std::string uuid = {};  // "GPU-…"; empty if unknown
  int mig_instances = 0;  // compute instances usable by this process; 0: not split
  std::vector<std::string> mig_uuids = {};  // only nvidia-smi knows these
};

// Variables of the agent's environment that choose among GPUs.
struct GpuEnvironment {
  std::optional<std::string> cuda_visible_devices = {};
  std::optional<std::string> hip_visible_devices = {};
  std::optional<std::string> rocr_visible_devices = {};
  std::optional<std::string> ze_affinity_mask = {};
};
GpuEnvironment gpu_environment();

// Runs a command and returns its standard output. nullopt: the command is missing or failed. Called
// only if the driver's files lack something. An empty function runs nothing.
using RunCommand = std::function<std::optional<std::string>(const std::vector<std::string>& argv)>;

// Returns the GPUs whose device files this process may open, regardless of the environment. `root`
// is "" outside of tests. names_wanted: the caller needs UUIDs, so nvidia-smi is asked for those
// missing in the driver's files.
std::vector<Gpu> nvidia_gpus(const std::string& root, const RunCommand& run, bool names_wanted);
// Returns the driver's name for the GPU. Empty: unknown.
std::string nvidia_model(const std::string& root, const std::string& pci);
std::vector<Gpu> amd_gpus(const std::string& root);
std::vector<Gpu> intel_gpus(const std::string& root);

// Returns the GPUs that a worker will see, in order: index i is torch.device("cuda:i"). cuda:
// NVIDIA's GPUs, else AMD's (torch calls both cuda). xpu: Intel's.
std::vector<Gpu> visible_cuda_gpus(const std::string& root, const GpuEnvironment& env,
                                   const RunCommand& run);
std::vector<Gpu> visible_xpu_gpus(const std::string& root, const GpuEnvironment& env);

}  // namespace lockstep::host
