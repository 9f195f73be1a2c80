// The options that say on which hosts something runs, and how they are reached: the same for every
// subcommand that takes a place.
#pragma once

#include "cli/options.h"

#include <optional>
#include <string>

namespace lockstep::cli {

struct PlaceOptions {
  std::optional<std::string> nodes;  // of a cluster
  std::optional<std::string> user;
  std::optional<std::string> key_path;
  std::optional<std::string> jump;
};

// The group "Hosts", with --help and --version at its end.
Group place_group();

}  // namespace lockstep::cli
