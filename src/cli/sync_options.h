// The command line of `lockstep sync`.
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "cli/place_options.h"

#include <optional>
#include <string>

namespace lockstep::cli {

struct SyncCommandOptions {
  std::string where;
  std::optional<std::string> project;  // SRC[:DST]
  std::optional<std::string> back;     // --back: what to bring back
  PlaceOptions places;
  bool force = false;
  bool dry_run = false;
  bool json = false;
};

const Table& sync_table();

// Returns the checked options. Errors: invalid_input.
Result<SyncCommandOptions> sync_options(const Parsed& parsed);

}  // namespace lockstep::cli
