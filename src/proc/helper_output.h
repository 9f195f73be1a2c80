// Runs a small helper (nvidia-smi -L) and waits for it, ten seconds at most.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::proc {

// Its standard output, 1 MiB at most; nullopt if it is not there, fails, or takes too long.
std::optional<std::string> helper_output(const std::vector<std::string>& argv);

}  // namespace lockstep::proc
