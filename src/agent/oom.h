// Was a SIGKILL the kernel's out-of-memory killer? Counters before and after say so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::agent {

// "oom_kill 3" among "name value" lines (memory.events, memory.oom_control, /proc/vmstat).
std::optional<std::uint64_t> parse_oom_kills(std::string_view text);

// Where this machine counts out-of-memory kills among our processes.
class OomCounter {
 public:
  // The first that exists: this process's v1 memory cgroup, its v2 cgroup (also mounted beside v1),
  // the whole machine's /proc/vmstat. `root` is "" but in tests.
  static OomCounter find(const std::string& root);
  // For a cgroup v2 folder that holds the workers.
  static OomCounter of_cgroup(const std::string& cgroup_dir);

  // nullopt: nothing counts here.
  std::optional<std::uint64_t> read() const;
  // What find() has read there.
  std::optional<std::uint64_t> first() const { return first_; }
  bool system_wide() const { return system_wide_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::optional<std::uint64_t> first_;
  bool system_wide_ = false;
};

// A note for the failure report if the exit was a SIGKILL and the counter rose meanwhile.
std::optional<std::string> oom_note(int exit_code, std::optional<std::uint64_t> before,
                                    std::optional<std::uint64_t> after, bool system_wide);

}  // namespace lockstep::agent
