// --explain: the values that `lockstep run` would use and where each comes from, for people.
#pragma once

#include "launch/launch_config.h"

#include <string>

namespace lockstep::cli {

std::string explain_text(const launch::LaunchConfig& config);

}  // namespace lockstep::cli
