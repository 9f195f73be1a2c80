#pragma once

#include "base/text.h"

#include <string_view>

namespace lockstep {

// The last line that has more than white space, without that around it; "" where there is none.
inline std::string_view last_line(std::string_view text) {
  text = strip(text);
  const std::size_t before = text.rfind('\n');
  return before == std::string_view::npos ? text : strip(text.substr(before + 1));
}

}  // namespace lockstep
