// The subcommands of lockstep (docs/command-line.md has their exit codes).
#pragma once

#include "cli/subcommand.h"

namespace lockstep::cli {

const Program& lockstep_program();

}  // namespace lockstep::cli
