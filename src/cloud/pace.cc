#include "cloud/pace.h"

#include "base/text.h"

#include <cmath>

namespace lockstep::cloud {

double pace_of(const Ground& ground) {
  const auto set = ground.env("LOCKSTEP_CLOUD_PACE");
  const auto factor = set ? parse_float(*set) : std::nullopt;
  // Only faster: the variable is for tests. A slower pace could leave machines running for longer.
  return factor && *factor >= 0 && *factor <= 1 ? *factor : 1;
}

std::chrono::milliseconds paced(std::chrono::milliseconds time, double pace) {
  return std::chrono::milliseconds(std::llround(static_cast<double>(time.count()) * pace));
}

}  // namespace lockstep::cloud
