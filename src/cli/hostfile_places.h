// Chooses the hosts of `lockstep run` from --on, or from --hostfile with --include and --exclude.
#pragma once

#include "base/error.h"
#include "cli/remote_options.h"
#include "hosts/host_link.h"

#include <string>
#include <vector>

namespace lockstep::cli {

struct ChosenPlaces {
  std::vector<hosts::HostPlace> hosts = {};
  // With --hostfile: the value of --slots for each host, in the order of `hosts`.
  std::vector<std::string> slots = {};
  // With --hostfile: the variables that DeepSpeed would take to the hosts, "NAME=value".
  std::vector<std::string> variables = {};
  std::vector<std::string> notes = {};  // lines for the user
};

// Returns the hosts and their settings. May rent the machines of a rented cluster. Errors:
// invalid_input, or a file cannot be read.
Result<ChosenPlaces> chosen_places(const RemoteOptions& options);

}  // namespace lockstep::cli
