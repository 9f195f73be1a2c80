// Reads and writes pieces of files in a tree. Follows no link, and replaces a file in one step once
// all its pieces have come.
#pragma once

#include "base/error.h"
#include "sync/confined.h"
#include "sync/pieces.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::sync {

// Returns fewer bytes than `length` if the file is shorter now or gone.
Result<std::string> read_piece(Confined& tree, std::string_view path, std::uint64_t offset,
                               std::uint64_t length);

// Writes one piece. The pieces of a file must come in order, all through the same Confined.
Status write_piece(Confined& tree, const Piece& piece);

// Returns the draft's path for a file in transfer, in the same folder, so that rename() works. path
// "": the common prefix of all drafts' names.
std::string draft_of(std::string_view path);

}  // namespace lockstep::sync
