// The option table of `lockstep why`.
#pragma once

#include "cli/options.h"

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::cli {

struct WhyOptions {
  std::string on;                   // empty: this machine
  std::optional<std::string> from;  // a report
  bool json = false;
  std::optional<std::int64_t> rank;
  bool threads = false;
  bool native = false;
};

const Table& why_table();

}  // namespace lockstep::cli
