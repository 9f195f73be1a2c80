// A factor by which tests shorten pauses for a provider's limits.
#pragma once

#include "cloud/provider.h"

#include <chrono>

namespace lockstep::cloud {

// Returns LOCKSTEP_CLOUD_PACE, from 0 to 1. Tests set it, since the clocks of their fakes run
// faster. Unset: 1.
double pace_of(const Ground& ground);
std::chrono::milliseconds paced(std::chrono::milliseconds time, double pace);

}  // namespace lockstep::cloud
