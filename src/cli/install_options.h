// The command line of `lockstep install`.
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "cli/place_options.h"
#include "setup/request.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

struct InstallOptions {
  std::string where;
  std::vector<std::string> specs;
  std::optional<std::string> venv;
  std::optional<std::string> conda;
  bool system = false;
  std::optional<std::string> python;
  bool force = false;
  bool no_uv = false;
  bool no_sync = false;
  std::optional<std::string> project;
  bool json = false;
  PlaceOptions places;

  // Of --venv, --conda and --system.
  setup::SetupRequest::Choice choice = setup::SetupRequest::Choice::project;
  std::string place;
};

const Table& install_table();

// All that can be refused without a host.
Result<InstallOptions> install_options(const Parsed& parsed);

}  // namespace lockstep::cli
