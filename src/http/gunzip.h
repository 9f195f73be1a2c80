// Unpacks gzip: an answer with "Content-Encoding: gzip", or a file.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::http {

// limit: most bytes of the unpacked text. A few packed bytes may unpack to gigabytes. Fails with
// corrupt.
Result<std::string> gunzip(std::string_view packed, std::size_t limit);

// Returns the first `most` unpacked bytes. packed: a whole text or its beginning. Damaged or short
// input gives fewer bytes, and none if the input is not gzip.
std::string gunzip_start(std::string_view packed, std::size_t most);

}  // namespace lockstep::http
