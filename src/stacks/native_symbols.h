// The functions at addresses of an image in the memory of a process, by its dynamic symbols. No
// file is opened, for the reasons that elf.h names. The images are foreign: all is bounded.
#pragma once

#include "stacks/memory.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::stacks {

struct NativeSymbol {
  std::string name = {};  // as the linker knows it, at most kMostSymbolName bytes
  bool inside = false;    // false: the address lies behind the end of this function
};
constexpr std::size_t kMostSymbolName = 512;

// Returns the last function that begins at or before each address; nullopt: there is none.
// `start`: where the image's first byte is mapped. Returns nullopt for all if not everything could
// be read: a symbol that was not read may be nearer.
std::optional<std::vector<std::optional<NativeSymbol>>> symbols_at(
    Memory& process, Address start, std::span<const Address> addresses);

// Returns the name of a function without its arguments: "_ZN4c10d3Foo4waitEv" -> "c10d::Foo::wait".
// Names that are not so simple come back as they are. Takes linear time: a real demangler may make
// gigabytes of a name of 512 bytes.
std::string short_name(std::string_view symbol);

}  // namespace lockstep::stacks
