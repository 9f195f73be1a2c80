// Makes a picture of a Python process, by a layout.
#pragma once

#include "stacks/image_memory.h"
#include "stacks/layout.h"

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::stacks {

class FakePython {
 public:
  static constexpr Address kRuntime = 0x1000;

  explicit FakePython(const Layout& made) : layout(made) {
    code_type_ = make_type("code");
    str_type_ = make_type("str");
    bytes_type_ = make_type("bytes");
    interpreter = take(8192);
    set(kRuntime + layout.interpreters, interpreter);
    set(interpreter + layout.next_interpreter, Address{0});
    set(interpreter + layout.threads, Address{0});
    gil = kRuntime;
    if (layout.gil_pointer != kNone) {
      gil = take(64);
      set(interpreter + layout.gil_pointer, gil);
    }
    hold_gil(0);
    if (layout.gil_enabled != kNone) set(gil + layout.gil_enabled, std::int32_t{1});
    if (layout.main_thread != kNone) set(kRuntime + layout.main_thread, std::uint64_t{0});
  }

  void hold_gil(Address thread) {
    set(gil + layout.gil_holder, thread);
    set(gil + layout.gil_locked, std::int32_t{thread == 0 ? 0 : 1});
  }

  // ASCII.
  Address make_text(std::string_view text) {
    return make_text(std::as_bytes(std::span(text)), 1, true);
  }
  // Characters of 1, 2 or 4 bytes.
  Address make_text(std::span<const std::byte> characters, unsigned width, bool ascii) {
    const std::uint32_t data = ascii ? layout.text_ascii : layout.text_compact;
    const Address at = take(data + characters.size());
    set(at + layout.type, str_type_);
    set(at + layout.text_length, std::uint64_t{characters.size() / width});
    const std::uint32_t bits = width | 8U | (ascii ? 16U : 0U);
    set(at + layout.text_state, bits << layout.text_kind_bit);
    memory.put(at + data, characters);
    return at;
  }

  Address make_bytes(const std::vector<std::uint8_t>& data) {
    const Address at = take(layout.bytes_data + data.size());
    set(at + layout.type, bytes_type_);
    set(at + layout.size, std::uint64_t{data.size()});
    memory.put(at + layout.bytes_data, std::as_bytes(std::span(data)));
    return at;
  }

  // `units`: of bytecode, two bytes each.
  Address make_code(Address name, Address file, int first_line,
                    const std::vector<std::uint8_t>& lines, std::uint64_t units) {
    const Address at = take(layout.code_bytes + 2 * units);
    set(at + layout.type, code_type_);
    set(at + layout.name, name);
    set(at + layout.file_name, file);
    set(at + layout.line_table, make_bytes(lines));
    set(at + layout.first_line, std::int32_t{first_line});
    if (layout.inline_bytecode())
      set(at + layout.size, units);
    else
      set(at + layout.bytecode, make_bytes(std::vector<std::uint8_t>(2 * units)));
    return at;
  }

  // `unit`: the instruction that runs. -1: the frame has not begun. From 3.12 on, a frame of the
  // interpreter itself follows the outermost one.
  Address make_frame(Address code, int unit, Address previous, std::uint8_t owner = 0) {
    if (previous == 0 && owner < kSkipped && layout.ends_with_skipped())
      previous = make_frame(0, 0, 0, kSkipped);
    const Address at = take(layout.frame_bytes);
    set(at + layout.previous, previous);
    // From 3.13 on, a tag is in the low bits.
    set(at + layout.code, code | (layout.version >= Version{3, 13} ? 1U : 0U));
    if (layout.inline_bytecode())
      set(at + layout.instruction, code + layout.bytecode + static_cast<Address>(2L * unit));
    else
      set(at + layout.instruction, layout.version.minor < 10 && unit > 0 ? 2 * unit : unit);
    if (layout.owner != kNone) set(at + layout.owner, owner);
    return at;
  }

  // Puts a thread at the head of the list. tid: also the pthread id.
  Address make_thread(int tid, Address frame) {
    const Address at = take(layout.thread_bytes);
    set(at + layout.next_thread, newest_);
    set(at + layout.interpreter, interpreter);
    set(at + layout.thread_id, static_cast<std::uint64_t>(tid));
    if (layout.native_id != kNone) set(at + layout.native_id, static_cast<std::uint64_t>(tid));
    Address top = at + layout.frame;
    if (layout.frame_of_cframe != kNone) {
      const Address cframe = take(64);
      set(top, cframe);
      top = cframe + layout.frame_of_cframe;
    }
    set(top, frame);
    newest_ = at;
    set(interpreter + layout.threads, at);
    return at;
  }

  template <class T>
  void set(Address at, T made) {
    memory.put_value(at, made);
  }

  // Reserves memory, filled with zeros.
  Address take(std::size_t size) {
    const Address at = free_;
    memory.put(at, std::vector<std::byte>(size + 8));
    free_ += (size + 8 + 63) / 64 * 64;
    return at;
  }

  Layout layout;
  ImageMemory memory;
  Address interpreter = 0;
  Address gil = 0;

 private:
  Address make_type(std::string_view name) {
    const Address text = take(16);
    memory.put(text, std::as_bytes(std::span(name)));
    const Address at = take(64);
    set(at + layout.type_name, text);
    return at;
  }

  Address free_ = 0x7f0000000000;
  Address newest_ = 0;
  Address code_type_ = 0;
  Address str_type_ = 0;
  Address bytes_type_ = 0;
};

}  // namespace lockstep::stacks
