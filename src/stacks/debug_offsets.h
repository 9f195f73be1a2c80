// The description that CPython 3.13 and later carry of themselves, at the start of _PyRuntime
// (_Py_DebugOffsets in CPython's pycore_debug_offsets.h).
#pragma once

#include "stacks/layout.h"
#include "stacks/memory.h"

#include <optional>

namespace lockstep::stacks {

struct SelfDescription {
  Version version;
  std::optional<Layout> layout;  // none: a version whose description is unknown, or damaged
};

// Returns nothing if _PyRuntime does not begin with a description (3.12 and before).
std::optional<SelfDescription> self_description(Memory& process, Address runtime);

}  // namespace lockstep::stacks
