// Lists the folders of this machine that a container sees: --container-mounts, and the ones
// Lockstep itself needs at the same path. Pure.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::container {

struct Mount {
  std::string from;  // absolute, on this machine
  std::string to;    // absolute, in the container
  bool read_only = false;

  friend bool operator==(const Mount&, const Mount&) = default;
};

// Reads "SRC:DST[:ro],...". A relative SRC begins at `folder`. Errors: invalid_input.
Result<std::vector<Mount>> read_mounts(std::string_view text, const std::string& folder);

// Returns the user's mounts and the folders of Lockstep, parents before children. A folder below
// another one of these at its own path is left out, and a mount of the user's replaces a folder at
// the same path. Errors: invalid_input, for a path with ':' or ',', which no runtime takes.
Result<std::vector<Mount>> all_mounts(const std::vector<Mount>& wanted,
                                      const std::vector<std::string>& folders);

}  // namespace lockstep::container
