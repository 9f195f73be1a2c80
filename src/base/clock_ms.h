// Unix time in milliseconds, the unit of reports, events and jobs.
#pragma once

#include <chrono>
#include <cstdint>

namespace lockstep {

inline std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace lockstep
