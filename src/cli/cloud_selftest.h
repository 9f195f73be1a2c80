// lockstep cloud selftest, for the row in cloud.cc.
#pragma once

#include "cli/subcommand.h"

namespace lockstep::cli {

Result<ExitCode> cloud_selftest_command(const Call& call);

}  // namespace lockstep::cli
