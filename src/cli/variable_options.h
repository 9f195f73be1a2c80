// The options --env, --env-file and --secret, which set environment variables for programs on
// hosts.
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

// Returns the rows of these options, for any group of a table.
std::vector<Option> variable_rows();

}  // namespace lockstep::cli
