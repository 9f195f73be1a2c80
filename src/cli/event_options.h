// The option tables of `lockstep events` and `lockstep trace`.
#pragma once

#include "cli/options.h"

#include <optional>
#include <string>

namespace lockstep::cli {

struct EventsOptions {
  bool follow = false;
  bool json = false;
};

struct TraceOptions {
  std::optional<std::string> output;
  std::optional<std::string> from;  // a file of --events, or a report
};

const Table& events_table();
const Table& trace_table();

}  // namespace lockstep::cli
