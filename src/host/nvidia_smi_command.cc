#include "host/nvidia_smi_command.h"

#include "base/text.h"

namespace lockstep::host {
namespace {

std::string uuid_in(const std::string& line) {
  constexpr std::string_view key = "(UUID: ";
  const std::size_t start = line.find(key);
  if (start == std::string::npos) return {};
  const std::size_t end = line.find(')', start);
  if (end == std::string::npos) return {};
  return line.substr(start + key.size(), end - start - key.size());
}

}  // namespace

std::vector<std::string> nvidia_smi_list_command() {
  return {"nvidia-smi", "-L"};
}

std::vector<Gpu> parse_nvidia_smi_list(std::string_view text) {
  std::vector<Gpu> gpus;
  for (const auto& line : split(text, '\n')) {
    const std::string uuid = uuid_in(line);
    if (line.starts_with("GPU ") && uuid.starts_with("GPU-")) {
      Gpu gpu;
      gpu.index = static_cast<int>(gpus.size());
      gpu.uuid = uuid;
      gpus.push_back(gpu);
    } else if (!gpus.empty() && uuid.starts_with("MIG-")) {
      gpus.back().mig_uuids.push_back(uuid);
      ++gpus.back().mig_instances;
    }
  }
  return gpus;
}

}  // namespace lockstep::host
