// What this process's cgroups allow it: memory and CPU time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::host {

struct CgroupLimits {
  std::optional<std::int64_t> memory = {};  // bytes
  std::optional<double> cpus = {};          // CPU time per time: 1.5 is one and a half CPUs
};

// The smallest limits on the way up from our own group. `root` is "" except in tests.
CgroupLimits cgroup_limits(const std::string& root);

}  // namespace lockstep::host
