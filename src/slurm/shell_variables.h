// Puts the values of a script's own variables where the script's shell would. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::slurm {

// The value of a variable; nullopt: it is not known here.
using Lookup = std::function<std::optional<std::string>(std::string_view)>;

// `text` with "$A", "${A}", "${A[@]}", "${A:-default}" and "$((A * 2))" replaced where they are
// marked (shell_words.h) and known; the rest stays as it is, with its mark. At most 64 KiB.
std::string put_values(std::string_view text, const Lookup& lookup);

}  // namespace lockstep::slurm
