// Standard base64 (RFC 4648 section 4): with padding, without line breaks.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::codec {

std::string base64_encode(std::string_view bytes);
// Section 5's, as tokens have it: '-' and '_' for '+' and '/', no padding.
std::string base64url_encode(std::string_view bytes);

// Strict: other characters, a wrong length or padding, and bits that no encoder leaves in the last
// character are errors that name the place.
Result<std::string> base64_decode(std::string_view text);

}  // namespace lockstep::codec
