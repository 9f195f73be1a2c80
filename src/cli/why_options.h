// The option table of `lockstep why`.
#pragma once

#include "cli/options.h"

#include <string>

namespace lockstep::cli {

struct WhyOptions {
  std::string on;  // empty: this machine
  bool json = false;
};

const Table& why_table();

}  // namespace lockstep::cli
