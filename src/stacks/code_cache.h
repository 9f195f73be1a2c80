// What is known of the code objects of a process: their names and line tables.
#pragma once

#include "stacks/layout.h"
#include "stacks/memory.h"
#include "stacks/objects.h"

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep::stacks {

// The members of a code object that tell it from a later one at the same address.
struct CodeIdentity {
  Address file = 0;
  Address name = 0;
  Address lines = 0;
  Address copies = 0;  // free-threaded 3.14: copies of the bytecode by thread
  std::int32_t first_line = 0;
  std::uint64_t size = 0;  // 3.11 and later: of the bytecode in units of two bytes
  friend bool operator==(const CodeIdentity&, const CodeIdentity&) = default;
};

struct Code {
  CodeIdentity identity;
  std::string function;
  std::string file;
  std::vector<std::uint8_t> lines;
  std::uint64_t bytes = 0;  // of the bytecode
  bool generator = false;   // or coroutine. Unknown from 3.12 on
  // The last question and its answer. A thread that waits asks the same again, and a large function
  // has a line table of many kilobytes.
  std::int64_t last_offset = -1;
  int last_line = 0;
};

class CodeCache {
 public:
  // The layout must outlive the cache.
  explicit CodeCache(const Layout& layout) : layout_(&layout), objects_(layout) {}

  // Brings these code objects up to date, all by one read if they are known and unchanged. The
  // version's own counter of freed code objects (3.14) isn't needed. Duplicates are allowed.
  void refresh(Memory& memory, std::span<const Address> codes);

  // Returns a code object of the last refresh(). nullptr: there is none at this address.
  Code* find(Address code);

  std::size_t count() const { return codes_.size(); }

 private:
  void keep(Memory& memory, Address at, const ObjectCopy& copy);
  void forget(Address at);

  const Layout* layout_;
  Objects objects_;
  std::unordered_map<Address, Code> codes_;
  std::size_t bytes_ = 0;  // of names and tables
};

}  // namespace lockstep::stacks
