// How often a test of random runs repeats itself.
#pragma once

#include <algorithm>

namespace lockstep {

// Builds with sanitizers or without optimisation are 5 to 10 times slower. They look for other
// defects, which show in few runs.
constexpr int test_rounds(int optimised) {
#ifdef NDEBUG
  return optimised;
#else
  return std::max(1, optimised / 5);
#endif
}

}  // namespace lockstep
