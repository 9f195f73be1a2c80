// The options that give variables to what runs on hosts: the same for every subcommand that has
// them.
#pragma once

#include "cli/options.h"

#include <string>
#include <vector>

namespace lockstep::cli {

struct VariableOptions {
  std::vector<std::string> env;
  std::vector<std::string> env_files;
  std::vector<std::string> secrets;
};

// Rows for a group.
std::vector<Option> variable_rows();

}  // namespace lockstep::cli
