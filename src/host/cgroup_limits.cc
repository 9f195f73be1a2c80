// Reads cgroup limits of both versions.
#include "host/cgroup_limits.h"

#include "base/text.h"
#include "host/sysfs.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::host {
namespace {

// Version 1 shows "no limit" as a number beyond any machine's memory.
constexpr std::int64_t kNoMemoryLimit = std::int64_t{1} << 60;

template <class Number>
void lower(std::optional<Number>& limit, Number value) {
  // Every level of the hierarchy may lower the limit.
  limit = limit ? std::min(*limit, value) : value;
}

void read_memory(const std::string& file, CgroupLimits& limits) {
  const auto text = read_text(file);
  const auto bytes = text ? parse_int(*text) : std::nullopt;  // "max" does not parse
  if (bytes && *bytes >= 0 && *bytes < kNoMemoryLimit) lower(limits.memory, *bytes);
}

void lower_cpus(std::optional<std::int64_t> quota, std::optional<std::int64_t> period,
                CgroupLimits& limits) {
  // A quota of -1 (version 1) or "max" (version 2) means no limit.
  if (quota && period && *quota > 0 && *period > 0)
    lower(limits.cpus, static_cast<double>(*quota) / static_cast<double>(*period));
}

void read_version_2(const std::string& folder, CgroupLimits& limits) {
  read_memory(folder + "/memory.max", limits);
  const auto words = split(read_text(folder + "/cpu.max").value_or(""), ' ');  // "max 100000"
  if (words.size() == 2) lower_cpus(parse_int(words[0]), parse_int(words[1]), limits);
}

void read_version_1(const std::string& folder, CgroupLimits& limits) {
  read_memory(folder + "/memory.limit_in_bytes", limits);
  lower_cpus(read_number(folder + "/cpu.cfs_quota_us"), read_number(folder + "/cpu.cfs_period_us"),
             limits);
}

// Calls `read` for the group's folder and every folder above it, up to the root of the hierarchy. A
// limit of any of them applies to this process.
template <class Read>
void climb(const std::string& hierarchy, std::string group, const Read& read) {
  while (!group.empty() && group != "/") {
    read(hierarchy + group);
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
  // In a container the root of the hierarchy is usually the container's own group, with limits of
  // its own.
  read(hierarchy);
}

}  // namespace

CgroupLimits cgroup_limits(const std::string& root) {
  CgroupLimits limits;
  const std::string base = root + "/sys/fs/cgroup";
  for (const std::string& line : split(read_text(root + "/proc/self/cgroup").value_or(""), '\n')) {
    const auto fields = split(line, ':');  // "0::/a/b", or in version 1 "4:cpu,cpuacct:/a/b"
    if (fields.size() < 3) continue;
    const std::string group = line.substr(fields[0].size() + fields[1].size() + 2);
    if (fields[1].empty())
      climb(base, group, [&](const std::string& folder) { read_version_2(folder, limits); });
    for (const std::string& controller : split(fields[1], ','))
      if (controller == "memory" || controller == "cpu")
        climb(fmt::format("{}/{}", base, controller), group,
              [&](const std::string& folder) { read_version_1(folder, limits); });
  }
  return limits;
}

}  // namespace lockstep::host
