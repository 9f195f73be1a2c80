// The output of --explain: every value of a `lockstep run`, with the source of the value.
#pragma once

#include "launch/launch_config.h"

#include <string>

namespace lockstep::cli {

// Returns a table of lines for people, and the command. Never contains the job's token.
std::string explain_text(const launch::LaunchConfig& config);

}  // namespace lockstep::cli
