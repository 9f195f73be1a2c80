// The arguments and the output of nvidia-smi.
#pragma once

#include "host/gpus.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::host {

std::vector<std::string> nvidia_smi_list_command();

// Parses the output of the list command:
//   GPU 0: NVIDIA A100 (UUID: GPU-5c89…)
//     MIG 1g.5gb      Device  0: (UUID: MIG-1b2a…)
// Skips lines of another form. PCI bus and NUMA node stay unknown.
std::vector<Gpu> parse_nvidia_smi_list(std::string_view text);

// Facts about a GPU that the driver's files lack.
struct NvidiaRow {
  int index = 0;
  std::string uuid;
  std::string name;
  std::int64_t memory = 0;  // bytes
};
std::vector<std::string> nvidia_smi_query_command();
// Parses lines such as "0, GPU-5c89…, NVIDIA A100-SXM4-80GB, 81920".
std::vector<NvidiaRow> parse_nvidia_smi_query(std::string_view text);

// Compute capabilities. Asked separately, since drivers before 510 fail the whole query.
struct NvidiaCapability {
  std::string uuid;
  int capability = 0;  // 86 for "8.6"
};
std::vector<std::string> nvidia_smi_capability_command();
// Parses lines such as "GPU-5c89…, 8.0".
std::vector<NvidiaCapability> parse_nvidia_smi_capabilities(std::string_view text);

}  // namespace lockstep::host
