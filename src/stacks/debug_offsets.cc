// Reads _Py_DebugOffsets. Versions add members in the middle, so each minor version has a structure
// here, with all members up to the last one that is used.
#include "stacks/debug_offsets.h"

#include <cstring>
#include <limits>

namespace lockstep::stacks {
namespace {

using U64 = std::uint64_t;

constexpr char kCookie[] = "xdebugpy";

struct Head {
  char cookie[8];
  U64 version;  // PY_VERSION_HEX
  U64 free_threaded;
};
struct RuntimeOffsets {
  U64 size, finalizing, interpreters_head;
};
struct ThreadOffsets {
  U64 size, prev, next, interp, current_frame, thread_id, native_thread_id, datastack_chunk, status;
};
struct FrameOffsets {
  U64 size, previous, executable, instr_ptr, localsplus, owner;
};
struct CodeOffsets {
  U64 size, filename, name, qualname, linetable, firstlineno, argcount, localsplusnames,
      localspluskinds, co_code_adaptive;
};
struct ObjectOffsets {
  U64 object_size, ob_type;
  U64 type_size, tp_name, tp_repr, tp_flags;
  U64 tuple[3], list[3];
};
struct BytesAndTextOffsets {
  U64 bytes_size, bytes_ob_size, ob_sval;
  U64 text_size, state, length, asciiobject_size;
};

struct Offsets313 {
  Head head;
  RuntimeOffsets runtime;
  struct {
    U64 size, id, next, threads_head, gc, imports_modules, sysdict, builtins, ceval_gil, gil,
        gil_enabled, gil_locked, gil_holder;
  } interpreter;
  ThreadOffsets thread;
  FrameOffsets frame;
  CodeOffsets code;
  ObjectOffsets object;
  U64 dict[3], float_object[2], long_object[3];
  BytesAndTextOffsets text;
};

struct Offsets314 {
  Head head;
  RuntimeOffsets runtime;
  struct {
    U64 size, id, next, threads_head, threads_main, gc, imports_modules, sysdict, builtins,
        ceval_gil, gil, gil_enabled, gil_locked, gil_holder, code_object_generation,
        tlbc_generation;
  } interpreter;
  ThreadOffsets thread;
  FrameOffsets frame;
  U64 stackpointer, tlbc_index;
  CodeOffsets code;
  U64 co_tlbc;
  ObjectOffsets object;
  U64 set[4], dict[3], float_object[2], long_object[3];
  BytesAndTextOffsets text;
};

std::uint32_t offset(U64 value) {
  return value < kNone ? static_cast<std::uint32_t>(value) : kNone - 1;  // too large: refused later
}

// An offset within `whole` becomes one from the start of `part`. Offsets in the wrong order wrap to
// a huge number, which complete() refuses.
std::uint32_t within(U64 whole, U64 part) {
  return offset(whole - part);
}

template <class Offsets>
Layout common_layout(const Offsets& from) {
  Layout made;
  made.interpreters = offset(from.runtime.interpreters_head);
  made.next_interpreter = offset(from.interpreter.next);
  made.threads = offset(from.interpreter.threads_head);
  made.gil_pointer = offset(from.interpreter.ceval_gil);
  made.gil_holder = within(from.interpreter.gil_holder, from.interpreter.gil);
  made.gil_locked = within(from.interpreter.gil_locked, from.interpreter.gil);
  made.next_thread = offset(from.thread.next);
  made.interpreter = offset(from.thread.interp);
  made.thread_id = offset(from.thread.thread_id);
  made.native_id = offset(from.thread.native_thread_id);
  made.frame = offset(from.thread.current_frame);
  made.previous = offset(from.frame.previous);
  made.code = offset(from.frame.executable);
  made.instruction = offset(from.frame.instr_ptr);
  made.owner = offset(from.frame.owner);
  made.file_name = offset(from.code.filename);
  made.name = offset(from.code.qualname);
  made.line_table = offset(from.code.linetable);
  made.first_line = offset(from.code.firstlineno);
  made.bytecode = offset(from.code.co_code_adaptive);
  made.type = offset(from.object.ob_type);
  made.size = offset(from.object.object_size);
  made.type_name = offset(from.object.tp_name);
  made.text_length = offset(from.text.length);
  made.text_state = offset(from.text.state);
  made.text_ascii = offset(from.text.asciiobject_size);
  made.text_compact = offset(from.text.text_size - 8);  // PyUnicodeObject: one more pointer
  made.bytes_data = offset(from.text.ob_sval);
  if (from.head.free_threaded != 0) {
    made.gil_enabled = offset(from.interpreter.gil_enabled);
    made.text_kind_bit = 8;  // "interned" has a byte of its own there
  }
  return made;
}

std::optional<Layout> checked(Layout made, Version version) {
  made.version = version;
  if (!complete(made)) return {};
  return made;
}

std::optional<Layout> layout_313(Memory& process, Address runtime) {
  const auto from = process.value<Offsets313>(runtime);
  if (!from) return {};
  return checked(common_layout(*from), {3, 13});
}

std::optional<Layout> layout_314(Memory& process, Address runtime) {
  const auto from = process.value<Offsets314>(runtime);
  if (!from) return {};
  Layout made = common_layout(*from);
  if (from->head.free_threaded != 0) {
    made.bytecode_index = offset(from->tlbc_index);
    made.bytecode_copies = offset(from->co_tlbc);
  }
  return checked(made, {3, 14});
}

}  // namespace

std::optional<SelfDescription> self_description(Memory& process, Address runtime) {
  const auto head = process.value<Head>(runtime);
  if (!head || std::memcmp(head->cookie, kCookie, sizeof head->cookie) != 0) return {};
  SelfDescription made{{static_cast<int>((head->version >> 24) & 0xff),
                        static_cast<int>((head->version >> 16) & 0xff)},
                       {}};
  // An unknown minor version keeps its number, without a layout: the message names the version.
  if (made.version == Version{3, 13}) made.layout = layout_313(process, runtime);
  if (made.version == Version{3, 14}) made.layout = layout_314(process, runtime);
  return made;
}

}  // namespace lockstep::stacks
