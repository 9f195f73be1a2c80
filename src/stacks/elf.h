// Finds CPython's _PyRuntime in an ELF image, x86-64 or aarch64.
//
// First in the memory of the process, by the dynamic symbol table and its GNU hash. So no file is
// opened, which might lie on a file system that hangs, be deleted or replaced, or be visible in
// another mount namespace only. Every CPython since 3.8 exports the symbol, because its extension
// modules use it. Second in the file, for programs without dynamic symbols (static, stripped): by
// the section .PyRuntime (3.10 and later), or a symbol table.
//
// Both are bounded and take any bytes.
#pragma once

#include "stacks/memory.h"

#include <optional>

namespace lockstep::stacks {

struct RuntimeAt {
  Address runtime = 0;     // of _PyRuntime
  Address version = 0;     // of Py_Version (3.11 and later), an unsigned long. 0: unknown
  std::uint64_t size = 0;  // of _PyRuntime. 0: unknown
};

// `start`: where the image's first byte is mapped.
std::optional<RuntimeAt> runtime_in_memory(Memory& process, Address start);

// `file`: the bytes of the file, by offset. `start`: where the process has mapped its first byte.
std::optional<RuntimeAt> runtime_in_file(Memory& file, Address start);

}  // namespace lockstep::stacks
