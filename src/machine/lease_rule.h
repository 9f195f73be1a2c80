// Decides when a lease stops its jobs and when it ends its machine. Times are CLOCK_BOOTTIME in
// milliseconds, which cannot be set. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::machine {

struct LeaseView {
  std::int64_t now = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t idle_limit = 0;  // 0: none
  std::int64_t idle_since = 0;  // the last time at which something worked
  std::int64_t hold_until = 0;
  int jobs = 0;
  std::string notice = {};
};

struct LeaseStep {
  enum class Kind { wait, stop_jobs, end };
  Kind kind = Kind::wait;
  std::string why = {};  // shown to the user
};

// Returns what to do now.
LeaseStep next_step(const LeaseView& view);

// Returns how long before its end a lease stops its jobs: a minute, or a quarter of a short lease.
std::int64_t stop_ahead_ms(std::int64_t begin, std::int64_t end);

}  // namespace lockstep::machine
