// Pieces of files, read from a tree and written into one. No link is followed, and a file is
// replaced in one step once it is whole.
#pragma once

#include "base/error.h"
#include "sync/confined.h"
#include "sync/pieces.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::sync {

// Fewer bytes than asked for: the file is shorter now, or gone.
Result<std::string> read_piece(Confined& tree, std::string_view path, std::uint64_t offset,
                               std::uint64_t length);

// The pieces of one file must come in order, all of them to the same tree.
Status write_piece(Confined& tree, const Piece& piece);

// Where a file lies that is not whole yet: beside the one it becomes. "": what all of these names
// begin with.
std::string draft_of(std::string_view path);

}  // namespace lockstep::sync
