// Shell completion scripts, generated from the rows of subcommands and from option tables, for the
// program and for its links such as torchrun.
#pragma once

#include "base/error.h"
#include "cli/subcommand.h"

#include <string>
#include <string_view>

namespace lockstep::cli {

// Returns the script for bash, zsh or fish. Errors: invalid_input for any other shell, also for
// tcsh, which torchrun supports.
Result<std::string> completion_script(const Program& program, std::string_view shell);

}  // namespace lockstep::cli
