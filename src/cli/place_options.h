// The options that choose hosts and how to reach the hosts, shared by all subcommands that take a
// place.
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
