// The command line of `lockstep doctor`.
#pragma once

#include "cli/options.h"

#include <string>

namespace lockstep::cli {

struct DoctorOptions {
  std::string python;  // a path or name; empty: the project's environment, else python3
  bool json = false;
};

const Table& doctor_table();

}  // namespace lockstep::cli
