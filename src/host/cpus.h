// The CPUs that this process may run on, and the kernel's list form "0-3,8".
#pragma once

#include "base/error.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::host {

inline constexpr int kMaxCpu = (1 << 16) - 1;

// Parses a list. Returns sorted CPUs without duplicates. "" (the list of a memory-only node) is
// empty. Fails with corrupt.
Result<std::vector<int>> parse_cpu_list(std::string_view text);
std::string print_cpu_list(std::span<const int> cpus);

// Returns the CPUs of the affinity mask, which torch counts, too. Ignores a cgroup's CPU quota.
Result<std::vector<int>> allowed_cpus();

}  // namespace lockstep::host
