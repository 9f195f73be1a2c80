// The option table of `lockstep profile`.
#pragma once

#include "cli/options.h"

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::cli {

struct ProfileOptions {
  std::optional<std::int64_t> steps;
  std::optional<double> seconds;
  std::int64_t multiple_of = 1;
  std::string ranks;  // empty: all
  std::optional<std::string> output;
  std::int64_t timeout = 120;
};

const Table& profile_table();

}  // namespace lockstep::cli
