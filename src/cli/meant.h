// Guesses the option or variable behind an unknown name: a name of another launcher, or a near
// miss.
#pragma once

#include "cli/options.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

// Returns the long name of the option that `name` probably stands for; nullopt: none is close. Both
// have no leading dashes, and `name` has dashes in place of underscores.
std::optional<std::string> meant_option(const Table& table, std::string_view name);

// Returns a warning for each unread PET_ variable whose name is close to a variable of an option.
// Other unread PET_ variables get no warning, as with torchrun.
std::vector<std::string> mistyped_variables(const Table& table,
                                            std::span<const std::string> variables);

}  // namespace lockstep::cli
