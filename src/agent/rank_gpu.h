// Which GPU a rank uses: a guess by its environment, as scripts commonly choose. Pure.
#pragma once

#include "agent/worker_spec.h"
#include "host/gpus.h"

#include <optional>
#include <vector>

namespace lockstep::agent {

// gpus: all of this machine, of one vendor. Returns the GPUs that a worker sees.
std::vector<host::Gpu> gpus_seen_by(const Environment& env, const std::vector<host::Gpu>& gpus);

// Returns the GPU that a script commonly takes: torch.device("cuda", LOCAL_RANK), or the only
// visible GPU. nullopt: the worker sees no GPU of this number.
std::optional<host::Gpu> gpu_of_rank(const Environment& env, const std::vector<host::Gpu>& gpus);

}  // namespace lockstep::agent
