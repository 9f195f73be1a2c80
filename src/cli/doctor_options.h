// The command line of `lockstep doctor`.
#pragma once

#include "cli/options.h"

#include <string>

namespace lockstep::cli {

struct DoctorOptions {
  std::string python;
  bool json = false;
};

const Table& doctor_table();

}  // namespace lockstep::cli
