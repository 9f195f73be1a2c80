// UTF-8 according to RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

// Returns the length in bytes of the character at the start. 0: malformed.
std::size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view bytes);

// Like utf8_length(), but also returns 0 for control characters, which a terminal would obey. These
// include the C1 characters (U+0080 to U+009F, such as CSI and OSC).
std::size_t shown_length(std::string_view text);
void append_escaped(char byte, std::string& to);  // as \xNN

}  // namespace lockstep
