// Shell completion scripts, generated from the rows of the subcommands and their option tables, for
// the program and for the links through which it may be called.
#pragma once

#include "base/error.h"
#include "cli/subcommand.h"

#include <string>
#include <string_view>

namespace lockstep::cli {

// shell: bash, zsh or fish. tcsh, which torchrun has, is refused.
Result<std::string> completion_script(const Program& program, std::string_view shell);

}  // namespace lockstep::cli
