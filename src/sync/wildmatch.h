// Git's way to compare a name with a pattern of an ignore file; pure.
#pragma once

#include <string_view>

namespace lockstep::sync {

enum class Slashes {
  plain,  // like any other byte
  apart,  // neither '*' nor '?' nor a class matches one, "**" does
};

// A pattern that would take more than a fixed number of steps matches nothing.
bool wildmatch(std::string_view pattern, std::string_view text, Slashes slashes);

}  // namespace lockstep::sync
