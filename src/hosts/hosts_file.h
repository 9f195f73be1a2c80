// Reads hostfiles of DeepSpeed and MPI: one host per line. Pure.
#pragma once

#include "base/error.h"
#include "ssh/target.h"

#include <optional>
#include <string_view>
#include <vector>

namespace lockstep::hosts {

struct ListedHost {
  ssh::Target target;
  std::optional<int> slots = {};  // workers there; nullopt: decided by the host's own GPUs or CPUs
};

// Reads one host per line: "[user@]host[:port] [slots=N]". '#' begins a comment. At most 4,096
// hosts. Errors name the line.
Result<std::vector<ListedHost>> parse_hosts_file(std::string_view text);

}  // namespace lockstep::hosts
