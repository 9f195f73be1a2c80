// Replaces a script's own variables by their values where the script's shell would. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::slurm {

// Returns the value of a variable; nullopt: unknown.
using Lookup = std::function<std::optional<std::string>(std::string_view)>;

// Replaces "$A", "${A}", "${A[@]}", "${A:-default}" and "$((A * 2))" where they are marked (see
// shell_words.h) and known. Leaves everything else unchanged, marks included. Returns at most 64
// KiB.
std::string put_values(std::string_view text, const Lookup& lookup);

}  // namespace lockstep::slurm
