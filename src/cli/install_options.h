// The command line of `lockstep install`.
#pragma once

#include "base/error.h"
#include "cli/environment_options.h"
#include "cli/options.h"
#include "cli/place_options.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

struct InstallOptions {
  std::string where;  // a cluster or a host
  std::vector<std::string> specs;
  EnvironmentOptions environment;
  ChosenEnvironment chosen;  // the result of `environment`
  std::optional<std::string> python;
  bool overlay = false;
  bool force = false;
  bool no_uv = false;
  bool no_sync = false;
  std::optional<std::string> project;
  bool json = false;
  PlaceOptions places;
};

const Table& install_table();

// Reads the command line, and refuses (invalid_input) all that can be refused without a host.
Result<InstallOptions> install_options(const Parsed& parsed);

}  // namespace lockstep::cli
