// Git's matching of names against patterns of ignore files (wildmatch.c). Pure.
#pragma once

#include <string_view>

namespace lockstep::sync {

enum class Slashes {
  plain,  // a slash is like any other byte
  apart,  // '*', '?' and classes do not match a slash, "**" does
};

// Returns true for a match. Gives up after a fixed number of steps, which counts as no match.
bool wildmatch(std::string_view pattern, std::string_view text, Slashes slashes);

}  // namespace lockstep::sync
