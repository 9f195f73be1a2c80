// Unpacks an answer that came with "Content-Encoding: gzip".
#pragma once

#include "base/error.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::http {

// limit: bytes of the unpacked text; a few bytes may unpack to gigabytes.
Result<std::string> gunzip(std::string_view packed, std::size_t limit);

}  // namespace lockstep::http
