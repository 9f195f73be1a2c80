#pragma once

#include "base/text.h"

#include <string_view>

namespace lockstep {

// Returns the last line that is not only white space, stripped. "" if there is none.
inline std::string_view last_line(std::string_view text) {
  text = strip(text);
  const std::size_t before = text.rfind('\n');
  return before == std::string_view::npos ? text : strip(text.substr(before + 1));
}

}  // namespace lockstep
