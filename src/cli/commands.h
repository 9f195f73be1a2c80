// The subcommands of lockstep. docs/command-line.md has the exit codes.
#pragma once

#include "cli/subcommand.h"

namespace lockstep::cli {

// Returns the program with all its rows, for dispatch, completion, man pages and docs/options.md.
const Program& lockstep_program();

}  // namespace lockstep::cli
