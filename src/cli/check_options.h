// The option table of lockstep check.
#pragma once

#include "cli/options.h"

#include <string>
#include <vector>

namespace lockstep::cli {

struct CheckOptions {
  std::vector<std::string> hostfiles;
  std::vector<std::string> ds_configs;
  bool no_slurm = false;
  bool json = false;
};

const Table& check_table();

}  // namespace lockstep::cli
