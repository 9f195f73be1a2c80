// Reads Slurm's list of nodes, as in SLURM_STEP_NODELIST: "n[1-3,07],login" -> n1 n2 n3 n07 login.
// The order is Slurm's own, because ranks follow it: where a name has several brackets, the last
// one runs fastest, then the first, the second and so on. Empty items are skipped, as Slurm does.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::codec {

constexpr std::size_t kMaxNodelistBytes = 1 << 20;
constexpr std::size_t kMaxNodelistHosts = 1 << 16;

// At least one name; duplicates are kept, as Slurm keeps them.
Result<std::vector<std::string>> expand_nodelist(std::string_view text);

}  // namespace lockstep::codec
