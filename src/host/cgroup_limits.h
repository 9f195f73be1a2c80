// The limits of this process's cgroups: memory and CPU time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::host {

struct CgroupLimits {
  std::optional<std::int64_t> memory = {};  // bytes
  std::optional<double> cpus = {};          // CPUs' worth of time: 1.5 is one and a half CPUs
};

// Returns the smallest limits from our own group upwards. `root` is "" outside of tests.
CgroupLimits cgroup_limits(const std::string& root);

}  // namespace lockstep::host
