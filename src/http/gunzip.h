// Unpacks an answer with "Content-Encoding: gzip".
#pragma once

#include "base/error.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::http {

// limit: most bytes of the unpacked text. A few packed bytes may unpack to gigabytes. Fails with
// corrupt.
Result<std::string> gunzip(std::string_view packed, std::size_t limit);

}  // namespace lockstep::http
