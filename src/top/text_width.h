// The columns that text takes on a terminal. Pure. The C library's own table depends on the locale,
// which a static binary does not have.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::top {

// Expects printable text (base/text.h).
std::size_t columns_of(std::string_view text);
// Returns the longest beginning that takes at most so many columns.
std::string_view cut_to(std::string_view text, std::size_t columns);

enum class Side { left, right };
// Cuts or fills the text to exactly so many columns. side: where the text stands.
std::string fitted(std::string_view text, std::size_t columns, Side side = Side::left);

}  // namespace lockstep::top
