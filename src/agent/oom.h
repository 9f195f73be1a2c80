// Detects whether a SIGKILL came from the kernel's out-of-memory killer, by counters before and
// after.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::agent {

// Returns the value of the "oom_kill 3" line in "name value" text (memory.events,
// memory.oom_control, /proc/vmstat). nullopt: no such line.
std::optional<std::uint64_t> parse_oom_kills(std::string_view text);

// The counter of out-of-memory kills closest to our processes.
class OomCounter {
 public:
  // Picks the first counter that exists: this process's v1 memory cgroup, its v2 cgroup (also
  // mounted beside v1), the machine's /proc/vmstat. `root` is "" outside of tests.
  static OomCounter find(const std::string& root);

  // Reads the counter. nullopt: no counter exists.
  std::optional<std::uint64_t> read() const;
  // Returns the value that find() read.
  std::optional<std::uint64_t> first() const { return first_; }
  // The counter covers the whole machine, not only this job.
  bool system_wide() const { return system_wide_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::optional<std::uint64_t> first_;
  bool system_wide_ = false;
};

// Returns a note for the failure report if the exit was a SIGKILL and the counter rose in between.
std::optional<std::string> oom_note(int exit_code, std::optional<std::uint64_t> before,
                                    std::optional<std::uint64_t> after, bool system_wide);

}  // namespace lockstep::agent
