// NVIDIA GPUs from the driver's files.
#include "base/text.h"
#include "host/gpus.h"
#include "host/nvidia_smi_command.h"
#include "host/sysfs.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>

namespace lockstep::host {
namespace {

// Finds a field: "GPU UUID: \t GPU-5c89" -> "GPU-5c89".
std::string field(const std::string& text, std::string_view name) {
  for (const auto& line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && strip(std::string_view(line).substr(0, colon)) == name)
      return std::string(strip(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

// Counts the compute instances that the driver offers for the GPU with this minor number.
int count_mig(const std::string& root, int minor) {
  const std::string dir = fmt::format("{}/proc/driver/nvidia/capabilities/gpu{}/mig", root, minor);
  int count = 0;
  for (const int gpu_instance : list_numbered(dir, "gi"))
    count +=
        static_cast<int>(list_numbered(fmt::format("{}/gi{}", dir, gpu_instance), "ci").size());
  return count;
}

// A container or scheduler may hide a GPU by removing or closing its device file, while the driver
// still lists the GPU. CUDA does not see such a GPU either.
std::vector<Gpu> from_driver(const std::string& root) {
  std::vector<Gpu> gpus;
  const std::string base = root + "/proc/driver/nvidia/gpus";
  for (const auto& pci : list_names(base)) {
    const auto text = read_text(fmt::format("{}/{}/information", base, pci));
    // An administrator may exclude a GPU in the driver: CUDA does not see it.
    if (!text || field(*text, "GPU Excluded") == "Yes") continue;
    // The device file has the minor number, which can differ from the PCI order.
    const auto minor = parse_int(field(*text, "Device Minor"));
    if (!minor || !may_open(fmt::format("{}/dev/nvidia{}", root, *minor))) continue;
    Gpu gpu;
    gpu.index = static_cast<int>(gpus.size());
    // Names in sysfs are in lower case.
    gpu.pci = to_lower(pci);
    gpu.numa_node =
        read_number(root + "/sys/bus/pci/devices/" + gpu.pci + "/numa_node").value_or(-1);
    gpu.uuid = field(*text, "GPU UUID");
    if (gpu.uuid.find('?') != std::string::npos) gpu.uuid.clear();  // not initialised yet
    gpu.mig_instances = count_mig(root, static_cast<int>(*minor));
    gpus.push_back(gpu);
  }
  return gpus;
}

// The fallback if the driver lists no GPU under /proc.
std::vector<Gpu> from_devices(const std::string& root) {
  std::vector<Gpu> gpus;
  for (const int minor : list_numbered(root + "/dev", "nvidia")) {
    if (!may_open(fmt::format("{}/dev/nvidia{}", root, minor))) continue;
    Gpu gpu;
    gpu.index = static_cast<int>(gpus.size());
    gpus.push_back(gpu);
  }
  return gpus;
}

// Adds names known only to nvidia-smi to GPUs found without it.
void add_names(std::vector<Gpu>& gpus, const std::vector<Gpu>& listed) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const auto match = std::find_if(listed.begin(), listed.end(), [&](const Gpu& other) {
      return gpus[i].uuid.empty() ? static_cast<std::size_t>(other.index) == i
                                  : other.uuid == gpus[i].uuid;
    });
    if (match == listed.end()) continue;
    gpus[i].uuid = match->uuid;
    // The driver's files name no MIG instances, so their UUIDs come from nvidia-smi alone.
    gpus[i].mig_uuids = match->mig_uuids;
    // Trust the source that knows more instances.
    gpus[i].mig_instances = std::max(gpus[i].mig_instances, match->mig_instances);
  }
}

bool names_missing(const std::vector<Gpu>& gpus) {
  return std::any_of(gpus.begin(), gpus.end(), [](const Gpu& gpu) {
    return gpu.uuid.empty() || (gpu.mig_instances > 0 && gpu.mig_uuids.empty());
  });
}

}  // namespace

std::vector<Gpu> nvidia_gpus(const std::string& root, const RunCommand& run, bool names_wanted) {
  std::vector<Gpu> gpus = from_driver(root);
  if (gpus.empty() && list_names(root + "/proc/driver/nvidia/gpus").empty())
    gpus = from_devices(root);
  // The Windows Subsystem for Linux puts its GPUs behind one device file without any details.
  const bool wsl = gpus.empty() && access((root + "/dev/dxg").c_str(), F_OK) == 0;
  if (!run || (!wsl && !(names_wanted && names_missing(gpus)))) return gpus;
  const auto text = run(nvidia_smi_list_command());
  if (!text) return gpus;
  auto listed = parse_nvidia_smi_list(*text);
  if (wsl) return listed;
  add_names(gpus, listed);
  return gpus;
}

std::string nvidia_model(const std::string& root, const std::string& pci) {
  const auto text = read_text(fmt::format("{}/proc/driver/nvidia/gpus/{}/information", root, pci));
  return text ? field(*text, "Model") : "";
}

}  // namespace lockstep::host
