// The options --nodes, --user, --key-path and --jump, shared by all subcommands that take a place.
#pragma once

#include "cli/options.h"

#include <optional>
#include <string>

namespace lockstep::cli {

struct PlaceOptions {
  std::optional<std::string> nodes;  // which nodes of a cluster: "all", "0", "1-3"
  std::optional<std::string> user;
  std::optional<std::string> key_path;
  std::optional<std::string> jump;
};

// Returns the group "Hosts", with --help and --version at its end.
Group place_group();

}  // namespace lockstep::cli
