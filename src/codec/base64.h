// Standard base64 (RFC 4648 section 4), with padding and without line breaks.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::codec {

std::string base64_encode(std::string_view bytes);
// The variant of section 5, for tokens: '-' and '_' instead of '+' and '/', without padding.
std::string base64url_encode(std::string_view bytes);

// Decodes strictly. Fails with corrupt, naming the place, for other characters, a wrong length or
// padding, and bits in the last character that no encoder produces.
Result<std::string> base64_decode(std::string_view text);

}  // namespace lockstep::codec
