// Where CPython keeps what a stack is made of: offsets in bytes, by version.
//
// The same on x86-64 and aarch64: no structure holds a pthread type, whose sizes differ, before one
// of these members (checked by compiling CPython's headers with the sizes of aarch64).
#pragma once

#include "stacks/line_table.h"
#include "stacks/maps.h"

#include <cstdint>
#include <optional>

namespace lockstep::stacks {

constexpr std::uint32_t kNone = UINT32_MAX;  // the version has no such member

struct Layout {
  Version version;
  LineTable lines = LineTable::locations;

  // In _PyRuntime.
  std::uint32_t interpreters = 0;
  std::uint32_t main_thread = kNone;  // pthread id; needed only before 3.11

  // In an interpreter.
  std::uint32_t next_interpreter = 0;
  std::uint32_t threads = 0;
  std::uint32_t gil_pointer = kNone;  // kNone: the GIL is a part of _PyRuntime (before 3.12)

  // In the GIL; before 3.12 in _PyRuntime.
  std::uint32_t gil_holder = 0;
  std::uint32_t gil_locked = 0;       // an int
  std::uint32_t gil_enabled = kNone;  // an int, in free-threaded builds only

  // In a thread's state.
  std::uint32_t next_thread = 8;
  std::uint32_t interpreter = 16;
  std::uint32_t thread_id = 0;      // pthread id
  std::uint32_t native_id = kNone;  // tid (3.11 and later)
  std::uint32_t frame = 0;          // the innermost frame
  std::uint32_t frame_of_cframe =
      kNone;  // 3.11 and 3.12: `frame` leads to a _PyCFrame, which has it

  // In a frame.
  std::uint32_t previous = 0;
  std::uint32_t code = 0;         // from 3.13 on with a tag in its low bits
  std::uint32_t instruction = 0;  // before 3.11 an index (int), then an address
  std::uint32_t owner = kNone;    // a byte (3.11 and later). From kSkipped on: no Python code
  std::uint32_t bytecode_index = kNone;  // free-threaded 3.14: which copy of the code runs

  // In a code object.
  std::uint32_t file_name = 0;
  std::uint32_t name = 0;  // the qualified name where there is one (3.11 and later)
  std::uint32_t line_table = 0;
  std::uint32_t first_line = 0;
  std::uint32_t flags = kNone;  // needed only before 3.12
  std::uint32_t bytecode = 0;   // before 3.11 a pointer to bytes, then the bytes themselves
  std::uint32_t bytecode_copies = kNone;  // free-threaded 3.14

  // In objects.
  std::uint32_t type = 8;
  std::uint32_t size = 16;  // number of items of an object of variable size
  std::uint32_t type_name = 24;
  std::uint32_t text_length = 16;
  std::uint32_t text_state = 32;
  std::uint32_t text_kind_bit = 2;  // where the kind begins in the state
  std::uint32_t text_ascii = 0;     // characters of an ASCII string
  std::uint32_t text_compact = 0;   // characters of another string
  std::uint32_t bytes_data = 32;

  bool inline_bytecode() const { return version >= Version{3, 11}; }
  // The outermost frame of each thread is one of the interpreter itself.
  bool ends_with_skipped() const { return version >= Version{3, 12}; }

  // Sizes of the first bytes of each structure that have all members. At most ObjectCopy::kLimit.
  std::uint32_t thread_bytes = 0;
  std::uint32_t frame_bytes = 0;
  std::uint32_t code_bytes = 0;
};

constexpr std::uint8_t kSkipped = 3;  // FRAME_OWNED_BY_CSTACK, _BY_INTERPRETER
constexpr std::uint8_t kHighestOwner = 4;

// Returns the layout of a release build of 3.8 to 3.12.
std::optional<Layout> layout_of(Version version);

// Fills the sizes in. Returns false if an object would be too large, or an offset absurd.
bool complete(Layout& layout);

}  // namespace lockstep::stacks
