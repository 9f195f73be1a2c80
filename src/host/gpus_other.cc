// AMD GPUs from the kfd topology, Intel GPUs from the DRM class.
#include "base/text.h"
#include "host/gpus.h"
#include "host/sysfs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>

namespace lockstep::host {
namespace {

// Parses "name value" lines.
std::map<std::string, std::uint64_t> properties(const std::string& path) {
  std::map<std::string, std::uint64_t> result;
  for (const auto& line : split(read_text(path).value_or(""), '\n')) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string::npos) continue;
    const std::string digits = line.substr(blank + 1);
    // Values such as unique_id have 64 bits without a sign, which parse_int() would refuse.
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) continue;
    result[line.substr(0, blank)] = strtoull(digits.c_str(), nullptr, 10);
  }
  return result;
}

std::string kfd_pci(std::uint64_t domain, std::uint64_t location) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain & 0xFFFF, (location >> 8) & 0xFF,
                     (location >> 3) & 0x1F, location & 7);
}

int numa_node_of(const std::string& root, const std::string& pci) {
  return read_number(root + "/sys/bus/pci/devices/" + pci + "/numa_node").value_or(-1);
}

std::string link_name(const std::string& path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error).filename().string();
}

// Only GPUs of the drivers xe and i915 count. The GPU at 00:02.0 is the processor's own.
bool is_discrete_intel(const std::string& device_dir, const std::string& pci) {
  const std::string driver = link_name(device_dir + "/driver");
  if (driver != "xe" && driver != "i915") return false;
  return !pci.ends_with(":00:02.0");
}

}  // namespace

std::vector<Gpu> amd_gpus(const std::string& root) {
  std::vector<Gpu> gpus;
  if (!may_open(root + "/dev/kfd")) return gpus;
  const std::string nodes = root + "/sys/class/kfd/kfd/topology/nodes";
  for (const int node : list_numbered(nodes, "")) {
    auto values = properties(fmt::format("{}/{}/properties", nodes, node));
    if (values["simd_count"] == 0) continue;  // a CPU, or a GPU hidden from this container
    // Access to a GPU goes through its render node.
    if (!may_open(fmt::format("{}/dev/dri/renderD{}", root, values["drm_render_minor"]))) continue;
    Gpu gpu;
    gpu.vendor = GpuVendor::amd;
    gpu.index = static_cast<int>(gpus.size());
    // kfd packs bus, device and function into location_id.
    gpu.pci = kfd_pci(values["domain"], values["location_id"]);
    gpu.numa_node = numa_node_of(root, gpu.pci);
    if (values["unique_id"] != 0) gpu.uuid = fmt::format("GPU-{:016x}", values["unique_id"]);
    gpus.push_back(gpu);
  }
  return gpus;
}

std::vector<Gpu> intel_gpus(const std::string& root) {
  std::vector<Gpu> gpus;
  const std::string drm = root + "/sys/class/drm";
  for (const int card : list_numbered(drm, "card")) {
    const std::string device = fmt::format("{}/card{}/device", drm, card);
    const std::string pci = link_name(device);
    if (read_text(device + "/vendor") != "0x8086" || !is_discrete_intel(device, pci)) continue;
    const auto nodes = list_numbered(device + "/drm", "renderD");
    if (nodes.empty() || !may_open(fmt::format("{}/dev/dri/renderD{}", root, nodes.front())))
      continue;
    Gpu gpu;
    gpu.vendor = GpuVendor::intel;
    gpu.pci = pci;
    gpu.numa_node = read_number(device + "/numa_node").value_or(-1);
    gpus.push_back(gpu);
  }
  // Indices follow the PCI order, which card numbers need not do.
  std::sort(gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) { return a.pci < b.pci; });
  for (std::size_t i = 0; i < gpus.size(); ++i)
    gpus[i].index = static_cast<int>(i);
  return gpus;
}

}  // namespace lockstep::host
