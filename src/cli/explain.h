// --explain: what `lockstep run` would go by, and where each value comes from, for people.
#pragma once

#include "launch/launch_config.h"

#include <string>

namespace lockstep::cli {

std::string explain_text(const launch::LaunchConfig& config);

}  // namespace lockstep::cli
