// Which option was meant by a name that no option has: names of other launchers, and near misses.
#pragma once

#include "cli/options.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

// The long name of the option that `name` is likely to stand for. Both are without leading dashes,
// and `name` has dashes in place of underscores.
std::optional<std::string> meant_option(const Table& table, std::string_view name);

// Returns a warning for each PET_ variable that no option reads but whose name is close to that of
// a variable that an option reads. Other unread PET_ variables get no warning, as with torchrun.
std::vector<std::string> mistyped_variables(const Table& table,
                                            std::span<const std::string> variables);

}  // namespace lockstep::cli
