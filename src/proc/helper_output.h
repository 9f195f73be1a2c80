// Runs a small helper program (nvidia-smi -L) and waits at most ten seconds.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::proc {

// Returns the program's standard output, at most 1 MiB. nullopt: the program is missing, fails, or
// takes too long.
std::optional<std::string> helper_output(const std::vector<std::string>& argv);

}  // namespace lockstep::proc
