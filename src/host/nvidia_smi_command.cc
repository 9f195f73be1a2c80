// Builds nvidia-smi's command lines and parses its output.
#include "host/nvidia_smi_command.h"

#include "base/text.h"

#include <algorithm>

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
    // A MIG line follows the line of its GPU.
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

std::vector<std::string> nvidia_smi_query_command() {
  return {"nvidia-smi", "--query-gpu=index,uuid,name,memory.total",
          "--format=csv,noheader,nounits"};
}

std::vector<NvidiaRow> parse_nvidia_smi_query(std::string_view text) {
  std::vector<NvidiaRow> rows;
  for (const auto& line : split(text, '\n')) {
    const auto fields = split(line, ',');
    // Lines of another form are messages of the driver.
    if (fields.size() != 4) continue;
    const auto index = parse_int(fields[0]);
    if (!index || *index < 0 || *index > INT32_MAX) continue;
    constexpr std::int64_t kMiB = std::int64_t{1} << 20;
    rows.push_back({static_cast<int>(*index), std::string(strip(fields[1])),
                    std::string(strip(fields[2])),
                    std::clamp<std::int64_t>(parse_int(fields[3]).value_or(0), 0, kMiB) * kMiB});
  }
  return rows;
}

std::vector<std::string> nvidia_smi_capability_command() {
  return {"nvidia-smi", "--query-gpu=uuid,compute_cap", "--format=csv,noheader"};
}

std::vector<NvidiaCapability> parse_nvidia_smi_capabilities(std::string_view text) {
  std::vector<NvidiaCapability> rows;
  for (const auto& line : split(text, '\n')) {
    const auto fields = split(line, ',');
    if (fields.size() != 2) continue;
    const auto numbers = split(strip(fields[1]), '.');
    if (numbers.size() != 2) continue;
    const auto major = parse_int(numbers[0]);
    const auto minor = parse_int(numbers[1]);
    if (!major || !minor || *major < 1 || *major > 99 || *minor < 0 || *minor > 9) continue;
    rows.push_back({std::string(strip(fields[0])), static_cast<int>(*major * 10 + *minor)});
  }
  return rows;
}

}  // namespace lockstep::host
