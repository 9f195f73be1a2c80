// CPUs this process may run on, and the kernel's list form "0-3,8".
#pragma once

#include "base/error.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::host {

inline constexpr int kMaxCpu = (1 << 16) - 1;

// Sorted, without repetitions. "" (a memory-only node's list) is empty.
Result<std::vector<int>> parse_cpu_list(std::string_view text);
std::string print_cpu_list(std::span<const int> cpus);

// The CPUs of the affinity mask, which torch counts too; a cgroup's CPU quota is not considered.
Result<std::vector<int>> allowed_cpus();

}  // namespace lockstep::host
