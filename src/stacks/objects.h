// Python's str and bytes objects in another process.
#pragma once

#include "stacks/layout.h"
#include "stacks/memory.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::stacks {

enum class ObjectType { code, str, bytes };

// Recognizes objects by the name of their type. A pointer astray, or an object that was freed while
// a stack was read, leads to another type or to none.
class Objects {
 public:
  explicit Objects(const Layout& layout) : layout_(&layout) {}

  bool is(Memory& memory, Address type, ObjectType wanted);

  // Returns a str as UTF-8, cut off after `limit` characters. Lone surrogates, with which Python
  // stands for bytes that are not UTF-8, become U+FFFD. Control characters stay.
  std::optional<std::string> text(Memory& memory, Address at, std::size_t limit);

  // Returns nothing if the bytes object is longer than `limit`.
  std::optional<std::vector<std::uint8_t>> bytes(Memory& memory, Address at, std::size_t limit);
  std::optional<std::uint64_t> bytes_size(Memory& memory, Address at);

 private:
  const Layout* layout_;
  std::array<Address, 3> known_{};
};

// Returns characters of 1, 2 or 4 bytes each (UCS-1, UCS-2, UCS-4) as UTF-8.
std::string to_utf8(std::span<const std::byte> characters, std::size_t width);

}  // namespace lockstep::stacks
