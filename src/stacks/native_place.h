// Names places in the native code of a process, given its memory.
#pragma once

#include "stacks/mappings.h"
#include "stacks/memory.h"

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::stacks {

// An address, and the byte that tells its function: a return address may lie behind the end of a
// function that ends with a call.
struct NativePlace {
  Address at = 0;
  Address inside = 0;
};
inline NativePlace after_call(Address at) {
  return {at, at - 1};
}

// Keeps the names that were found: ranks stand at the same places. Files that may lie on a file
// server have no names.
class PlaceNames {
 public:
  // Finds the names of all places at once: a library with many symbols is searched once.
  void find(Memory& memory, const std::vector<Mapping>& mappings,
            std::span<const NativePlace> places);

  // "libcuda.so.1+0x1a2b3 (cuCtxSynchronize)", of a place given to find(). "": no code is there.
  std::string text(const std::vector<Mapping>& mappings, const NativePlace& place) const;

 private:
  using Key = std::pair<std::string, Address>;  // file, offset of the byte in its image
  std::map<Key, std::string> known_;
};

// Returns the return addresses on a stack, at most `most`: words that point behind a call
// instruction of x86-64. Most, but not all, belong to functions that have not returned yet. None is
// in a file that may lie on a file server: its code is not read.
std::vector<Address> return_addresses(Memory& memory, const std::vector<Mapping>& mappings,
                                      Address stack, std::size_t most);

}  // namespace lockstep::stacks
