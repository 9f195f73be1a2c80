// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

// Length in bytes of the character at the start; 0 if it is not well formed.
std::size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view bytes);

// As utf8_length(), but also 0 for control characters, which a terminal would obey. The C1 ones
// (U+0080 to U+009F, such as CSI and OSC) are among them.
std::size_t shown_length(std::string_view text);
void append_escaped(char byte, std::string& to);  // as \xNN

}  // namespace lockstep
