// The hosts of `lockstep run`: of --on, or of --hostfile with --include and --exclude.
#pragma once

#include "base/error.h"
#include "cli/remote_options.h"
#include "hosts/host_link.h"

#include <string>
#include <vector>

namespace lockstep::cli {

struct ChosenPlaces {
  std::vector<hosts::HostPlace> hosts = {};
  // Of --hostfile alone.
  std::vector<std::string> slots = {};      // of each host, for --slots
  std::vector<std::string> variables = {};  // "NAME=value": what DeepSpeed takes to hosts
  std::vector<std::string> notes = {};      // for people
};

Result<ChosenPlaces> chosen_places(const RemoteOptions& options);

}  // namespace lockstep::cli
