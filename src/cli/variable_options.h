// The options that set environment variables for programs on hosts, shared by all subcommands that
// take variables.
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
