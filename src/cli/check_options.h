// The command line of `lockstep check`. The words that name a job are read by
// slurm::read_check_words().
#pragma once

#include "cli/options.h"

#include <string>
#include <vector>

namespace lockstep::cli {

struct CheckOptions {
  std::vector<std::string> hostfiles;   // paths
  std::vector<std::string> ds_configs;  // paths
  bool no_slurm = false;
  bool json = false;
};

const Table& check_table();

}  // namespace lockstep::cli
