// The option table of `lockstep top`.
#pragma once

#include "cli/options.h"

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::cli {

struct TopOptions {
  bool once = false;
  bool json = false;
  std::string sort = "rank";
  std::optional<std::int64_t> rank;
  double interval = 1;  // seconds
};

const Table& top_table();

}  // namespace lockstep::cli
