// The layouts of CPython 3.8 to 3.12, printed by a program that was compiled with the headers of
// 3.8.18, 3.9.18, 3.10.13, 3.11.2, 3.11.7 and 3.12.1.
#include "stacks/layout.h"

#include "stacks/memory.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

namespace lockstep::stacks {
namespace {

constexpr std::uint32_t kLargestState = 1U << 22;  // _PyRuntime of 3.12 has 450 KB

Layout before_3_11(int minor) {
  Layout made;
  made.version = {3, minor};
  // PEP 626 changed the line table in 3.10, PEP 657 in 3.11.
  made.lines = minor < 10 ? LineTable::lnotab : LineTable::line_deltas;
  made.interpreters = 32;
  made.main_thread = 72;
  made.next_interpreter = 0;
  made.threads = 8;
  // 3.9 moved the pending calls, which stand before the GIL, from _PyRuntime to the interpreters.
  made.gil_holder = minor == 8 ? 1160 : 360;
  made.gil_locked = made.gil_holder + 8;
  made.thread_id = 176;
  made.frame = 24;
  made.previous = 24;
  made.code = 32;
  made.instruction = minor < 10 ? 104 : 96;
  made.file_name = 104;
  made.name = 112;
  made.line_table = 120;
  made.first_line = 40;
  made.flags = 36;
  made.bytecode = 48;
  made.text_ascii = 48;
  made.text_compact = 72;
  return made;
}

Layout version_3_11() {
  Layout made;
  made.version = {3, 11};
  made.interpreters = 40;
  made.main_thread = 80;
  made.next_interpreter = 0;
  made.threads = 16;
  made.gil_holder = 368;
  made.gil_locked = 376;
  made.thread_id = 152;
  made.native_id = 160;
  made.frame = 56;
  made.frame_of_cframe = 8;
  made.previous = 48;
  made.code = 32;
  made.instruction = 56;
  made.owner = 69;
  made.file_name = 112;
  made.name = 128;
  made.line_table = 136;
  made.first_line = 72;
  made.flags = 48;
  made.bytecode = 184;
  made.text_ascii = 48;
  made.text_compact = 72;
  return made;
}

Layout version_3_12() {
  Layout made;
  made.version = {3, 12};
  made.interpreters = 40;
  made.main_thread = 64;
  made.next_interpreter = 0;
  made.threads = 72;
  // PEP 684 gave each interpreter a GIL of its own.
  made.gil_pointer = 384;
  made.gil_holder = 8;
  made.gil_locked = 16;
  made.thread_id = 136;
  made.native_id = 144;
  made.frame = 56;
  made.frame_of_cframe = 0;
  made.previous = 8;
  made.code = 0;
  made.instruction = 56;
  made.owner = 70;
  made.file_name = 112;
  made.name = 128;
  made.line_table = 136;
  made.first_line = 68;
  made.bytecode = 192;
  made.text_ascii = 40;
  made.text_compact = 56;
  return made;
}

// Returns how many bytes have all members that the version has. No member is wider than 8 bytes.
std::uint32_t bytes_for(std::initializer_list<std::uint32_t> offsets) {
  std::uint32_t end = 0;
  for (const std::uint32_t offset : offsets)
    if (offset != kNone) end = std::max(end, offset + 8);
  return end;
}

}  // namespace

std::optional<Layout> layout_of(Version version) {
  Layout made;
  if (version < Version{3, 8} || version > Version{3, 12}) return {};
  if (version < Version{3, 11})
    made = before_3_11(version.minor);
  else
    made = version.minor == 11 ? version_3_11() : version_3_12();
  if (!complete(made)) return {};
  return made;
}

bool complete(Layout& layout) {
  // From 3.13 on, the process itself tells its offsets. Refuse an absurd one before it is added to
  // an address.
  for (const std::uint32_t offset : {layout.interpreters,
                                     layout.next_interpreter,
                                     layout.threads,
                                     layout.gil_pointer,
                                     layout.gil_holder,
                                     layout.gil_locked,
                                     layout.gil_enabled,
                                     layout.main_thread,
                                     layout.frame,
                                     layout.frame_of_cframe,
                                     layout.next_thread,
                                     layout.interpreter,
                                     layout.thread_id,
                                     layout.native_id,
                                     layout.previous,
                                     layout.code,
                                     layout.instruction,
                                     layout.owner,
                                     layout.bytecode_index,
                                     layout.file_name,
                                     layout.name,
                                     layout.line_table,
                                     layout.first_line,
                                     layout.bytecode,
                                     layout.bytecode_copies,
                                     layout.type,
                                     layout.size,
                                     layout.type_name,
                                     layout.text_length,
                                     layout.text_state,
                                     layout.text_ascii,
                                     layout.text_compact,
                                     layout.bytes_data})
    if (offset != kNone && offset > kLargestState) return false;
  layout.thread_bytes = bytes_for(
      {layout.next_thread, layout.interpreter, layout.thread_id, layout.native_id, layout.frame});
  layout.frame_bytes = bytes_for(
      {layout.previous, layout.code, layout.instruction, layout.owner, layout.bytecode_index});
  layout.code_bytes =
      bytes_for({layout.type, layout.size, layout.file_name, layout.name, layout.line_table,
                 layout.first_line, layout.bytecode, layout.bytecode_copies});
  const std::uint32_t text_bytes =
      bytes_for({layout.type, layout.text_length, layout.text_state, layout.text_compact});
  const std::uint32_t other_bytes =
      bytes_for({layout.type_name, layout.text_ascii, layout.bytes_data, layout.size});
  return std::max({layout.thread_bytes, layout.frame_bytes, layout.code_bytes, text_bytes,
                   other_bytes}) <= ObjectCopy::kLimit;
}

}  // namespace lockstep::stacks
