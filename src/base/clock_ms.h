// Unix time in milliseconds, as reports and events carry it.
#pragma once

#include <chrono>
#include <cstdint>

namespace lockstep::agent {

inline std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace lockstep::agent
