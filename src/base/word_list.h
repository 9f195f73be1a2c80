// Small questions about a list of words, and its text for people.
#pragma once

#include "base/text.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

inline bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Returns the first names and the number of the others: "a, b and 3 more".
inline std::string join_some(std::span<const std::string> names, std::size_t most) {
  const std::string text = join(names.first(std::min(most, names.size())), ", ");
  return names.size() <= most ? text
                              : text + " and " + std::to_string(names.size() - most) + " more";
}

}  // namespace lockstep
