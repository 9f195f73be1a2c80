// The command line of `lockstep sync`.
#pragma once

#include "base/error.h"
#include "cli/options.h"

#include <optional>
#include <string>

namespace lockstep::cli {

struct SyncCommandOptions {
  std::string where;
  std::optional<std::string> source;       // SRC of SRC[:DST]
  std::optional<std::string> destination;  // DST
  std::optional<std::string> back;         // --back: what to bring back
  std::optional<std::string> nodes;
  std::optional<std::string> user;
  std::optional<std::string> key_path;
  std::optional<std::string> jump;
  bool force = false;
  bool dry_run = false;
  bool json = false;
};

const Table& sync_table();

Result<SyncCommandOptions> sync_options(const Parsed& parsed);

}  // namespace lockstep::cli
