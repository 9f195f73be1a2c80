// Runs a loop until a condition holds. For tests.
#pragma once

#include "io/loop.h"

#include <chrono>

namespace lockstep::io {

// Returns whether `fact` held before the limit, which only ends a hanging test.
template <class Fact>
bool run_until(Loop& loop, Fact fact, Duration limit = std::chrono::seconds(20)) {
  const auto end = Clock::now() + limit;
  while (!fact()) {
    if (Clock::now() >= end) return false;
    loop.run_once();
  }
  return true;
}

}  // namespace lockstep::io
