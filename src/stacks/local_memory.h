// A memory without the files that may lie on a file server. If the server is dead, a read of a page
// that is not in memory yet takes for ever.
#pragma once

#include "stacks/mappings.h"
#include "stacks/memory.h"

#include <vector>

namespace lockstep::stacks {

class LocalMemory final : public Memory {
 public:
  LocalMemory(Memory& memory, const std::vector<Mapping>& mappings)
      : memory_(memory), mappings_(mappings) {}

  std::size_t read_pieces(std::span<const Piece> pieces) override {
    std::size_t near = 0;
    while (near < pieces.size() && is_near(pieces[near]))
      ++near;
    return memory_.read_pieces(pieces.first(near));
  }

 private:
  // Refuse an address that was not mapped when `mappings` was read: a file may be mapped there now.
  bool is_near(const Piece& piece) const {
    const Address end = piece.at + piece.into.size();
    if (end < piece.at) return false;
    for (Address at = piece.at; at < end;) {
      const Mapping* mapping = mapping_at(mappings_, at);
      if (mapping == nullptr || mapping->far) return false;
      at = mapping->end;
    }
    return true;
  }

  Memory& memory_;
  const std::vector<Mapping>& mappings_;
};

}  // namespace lockstep::stacks
