// Parses Slurm's lists of nodes, as in SLURM_STEP_NODELIST: "n[1-3,07],login" -> n1 n2 n3 n07
// login. The order is Slurm's own, because ranks follow it: in a name with several brackets the
// last one varies fastest, then the first, the second and so on. Empty items are skipped, as in
// Slurm.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::codec {

constexpr std::size_t kMaxNodelistBytes = 1 << 20;
constexpr std::size_t kMaxNodelistHosts = 1 << 16;

// Returns at least one name. Keeps duplicates, as Slurm does. Fails with invalid_input.
Result<std::vector<std::string>> expand_nodelist(std::string_view text);

}  // namespace lockstep::codec
