// Shell completion scripts, generated from the option tables; for `lockstep` and `torchrun`.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::cli {

// shell: bash, zsh or fish. tcsh, which torchrun has, is refused.
Result<std::string> completion_script(std::string_view shell);

}  // namespace lockstep::cli
