// Splits a command line as a shell would.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Quotes and backslashes count, nothing is expanded. nullopt: the text ends inside quotes.
std::optional<std::vector<std::string>> shell_words(std::string_view text);

}  // namespace lockstep
