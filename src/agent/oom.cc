// Reads the kernel's out-of-memory counters.
#include "agent/oom.h"

#include "base/text.h"
#include "io/fd.h"

#include <signal.h>

#include <vector>

namespace lockstep::agent {
namespace {

std::optional<std::uint64_t> read_counter(const std::string& path) {
  const auto text = io::read_file(path, 1 << 16);
  return text ? parse_oom_kills(*text) : std::nullopt;
}

struct OwnCgroups {
  std::optional<std::string> v2;
  std::optional<std::string> v1_memory;
};

// Lines of /proc/self/cgroup: "0::/user.slice/x" is v2, "9:memory:/x" is v1.
OwnCgroups own_cgroups(const std::string& root) {
  OwnCgroups own;
  const auto text = io::read_file(root + "/proc/self/cgroup", 1 << 16);
  if (!text) return own;
  for (const auto& line : split(*text, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) own.v2 = path;
    for (const auto& controller : split(controllers, ','))
      if (controller == "memory") own.v1_memory = path;
  }
  return own;
}

}  // namespace

std::optional<std::uint64_t> parse_oom_kills(std::string_view text) {
  for (const auto& line : split(text, '\n')) {
    constexpr std::string_view key = "oom_kill ";
    if (!line.starts_with(key)) continue;
    const auto value = parse_int(std::string_view(line).substr(key.size()));
    if (value && *value >= 0) return static_cast<std::uint64_t>(*value);
  }
  return std::nullopt;
}

OomCounter OomCounter::find(const std::string& root) {
  const OwnCgroups own = own_cgroups(root);
  std::vector<std::string> candidates;
  const std::string mount = root + "/sys/fs/cgroup";
  // The memory controller is in one hierarchy only: if v1 has it, v2 has no counter. Try the
  // cgroup's own path first, then the mount point: in a container without a cgroup namespace the
  // cgroup is mounted at the top, whatever its path.
  if (own.v1_memory) {
    candidates.push_back(mount + "/memory" + *own.v1_memory + "/memory.oom_control");
    candidates.push_back(mount + "/memory/memory.oom_control");
  }
  if (own.v2) {
    for (const std::string& base : {mount, mount + "/unified"}) {
      candidates.push_back(base + *own.v2 + "/memory.events");
      candidates.push_back(base + "/memory.events");
    }
  }
  OomCounter counter;
  for (const auto& path : candidates) {
    counter.first_ = read_counter(path);
    if (!counter.first_) continue;
    counter.path_ = path;
    return counter;
  }
  // The last resort counts the kills of the whole machine, so a rise proves nothing about this job.
  counter.path_ = root + "/proc/vmstat";
  counter.first_ = counter.read();
  counter.system_wide_ = true;
  return counter;
}

std::optional<std::uint64_t> OomCounter::read() const {
  return read_counter(path_);
}

std::optional<std::string> oom_note(int exit_code, std::optional<std::uint64_t> before,
                                    std::optional<std::uint64_t> after, bool system_wide) {
  if (exit_code != -SIGKILL || !before || !after || *after <= *before) return std::nullopt;
  if (system_wide)
    return "probably killed by the kernel's out-of-memory killer (this machine had an OOM kill "
           "just then)";
  return "killed by the kernel's out-of-memory killer";
}

}  // namespace lockstep::agent
