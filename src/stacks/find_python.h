// From the mapped files of a process to its interpreter.
#pragma once

#include "stacks/elf.h"
#include "stacks/layout.h"
#include "stacks/maps.h"
#include "stacks/memory.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::stacks {

struct Interpreter {
  Address runtime = 0;
  std::string version;           // "3.11", or "" where nothing tells
  std::optional<Layout> layout;  // none: the version is unknown
};

// Opens a mapped file, for interpreters without dynamic symbols. nullptr: not possible.
using OpenFile = std::function<std::unique_ptr<Memory>(const MappedFile&)>;

// Returns nothing if none of the files holds CPython.
std::optional<Interpreter> find_python(Memory& process, const std::vector<MappedFile>& files,
                                       const OpenFile& open_file);

}  // namespace lockstep::stacks
