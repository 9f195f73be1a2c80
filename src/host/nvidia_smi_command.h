// nvidia-smi: its arguments and how to read what it prints.
#pragma once

#include "host/gpus.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::host {

std::vector<std::string> nvidia_smi_list_command();

// GPU 0: NVIDIA A100 (UUID: GPU-5c89…)
//   MIG 1g.5gb      Device  0: (UUID: MIG-1b2a…)
// Lines of another form are skipped. PCI bus and NUMA node stay unknown.
std::vector<Gpu> parse_nvidia_smi_list(std::string_view text);

// What the driver's files do not tell of each GPU.
struct NvidiaRow {
  int index = 0;
  std::string uuid;
  std::string name;
  std::int64_t memory = 0;  // bytes
};
std::vector<std::string> nvidia_smi_query_command();
// 0, GPU-5c89…, NVIDIA A100-SXM4-80GB, 81920
std::vector<NvidiaRow> parse_nvidia_smi_query(std::string_view text);

// Compute capabilities, which drivers before 510 do not tell: the whole query fails there.
struct NvidiaCapability {
  std::string uuid;
  int capability = 0;  // 86 for "8.6"
};
std::vector<std::string> nvidia_smi_capability_command();
// GPU-5c89…, 8.0
std::vector<NvidiaCapability> parse_nvidia_smi_capabilities(std::string_view text);

}  // namespace lockstep::host
