// Walks from _PyRuntime to interpreters, threads and frames.
#include "stacks/process_stacks.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace lockstep::stacks {
namespace {

constexpr std::size_t kMostInterpreters = 64;
constexpr int kListings = 3;

// The offset of the instruction from the start of the bytecode, in bytes; negative before the first
// instruction. None: it does not belong to this code object.
std::optional<std::int64_t> offset_in(std::uint64_t start, std::uint64_t instruction,
                                      std::uint64_t bytes) {
  // Before a frame has begun, 3.11 and 3.12 point to the unit before the first.
  if (instruction + 2 == start) return -2;
  if (instruction < start || instruction - start >= bytes) return {};
  return static_cast<std::int64_t>(instruction - start);
}

}  // namespace

ProcessStacks::ProcessStacks(const Layout& layout, Address runtime, pid_t pid,
                             const ReadLimits& limits)
    : layout_(std::make_unique<const Layout>(layout)),
      runtime_(runtime),
      pid_(pid),
      limits_(limits),
      codes_(*layout_) {}

tl::expected<void, Unreadable> ProcessStacks::check(Memory& memory) {
  BoundedMemory bounded(memory, limits_);
  if (const auto threads = list_threads(bounded); !threads)
    return tl::make_unexpected(threads.error());
  return {};
}

tl::expected<std::vector<ThreadStack>, Unreadable> ProcessStacks::read(Memory& memory) {
  BoundedMemory bounded(memory, limits_);
  const auto threads = list_threads(bounded);
  if (!threads) return tl::make_unexpected(threads.error());
  std::vector<ThreadStack> stacks;
  for (const Thread& thread : *threads) {
    if (thread.is_main) main_ = thread;
    stacks.push_back(stack_of(bounded, thread));
  }
  return stacks;
}

tl::expected<std::optional<ThreadStack>, Unreadable> ProcessStacks::read_main(Memory& memory) {
  BoundedMemory bounded(memory, limits_);
  // The main thread of the last look is most likely still there.
  if (main_) {
    auto same = thread_at(bounded, main_->at, main_->interpreter, main_pthread(bounded));
    if (same && same->is_main) {
      same->holds_gil = gil_holder(bounded, same->interpreter) == same->at;
      return stack_of(bounded, *same);
    }
    main_.reset();
  }
  const auto threads = list_threads(bounded);
  if (!threads) return tl::make_unexpected(threads.error());
  for (const Thread& thread : *threads) {
    if (!thread.is_main) continue;
    main_ = thread;
    return stack_of(bounded, thread);
  }
  return std::optional<ThreadStack>();
}

tl::expected<std::vector<ProcessStacks::Thread>, Unreadable> ProcessStacks::list_threads(
    BoundedMemory& memory) const {
  std::vector<Thread> most;
  bool started = true;
  for (int i = 0; i < kListings && !memory.exhausted(); ++i) {
    std::vector<Thread> threads;
    if (list_threads_once(memory, threads, started)) return threads;
    if (threads.size() > most.size()) most = std::move(threads);
  }
  // Threads come and go all the time. Those that were found are better than none.
  if (!most.empty()) return most;
  if (memory.exhausted()) return tl::make_unexpected(Unreadable::slow);
  return tl::make_unexpected(started ? Unreadable::changed : Unreadable::starting);
}

// Returns false if the list does not hold together, or `started` is false.
bool ProcessStacks::list_threads_once(Memory& memory, std::vector<Thread>& threads,
                                      bool& started) const {
  const auto first = memory.value<Address>(runtime_ + layout_->interpreters);
  started = !first || *first != 0;
  if (!first || !started) return false;
  Address interpreter = *first;
  for (std::size_t i = 0; interpreter != 0 && i < kMostInterpreters; ++i) {
    if (!threads_of(memory, interpreter, threads)) return false;
    const auto next = memory.value<Address>(interpreter + layout_->next_interpreter);
    if (!next || *next == interpreter) return false;
    interpreter = *next;
  }
  return true;
}

bool ProcessStacks::threads_of(Memory& memory, Address interpreter,
                               std::vector<Thread>& threads) const {
  const auto first = memory.value<Address>(interpreter + layout_->threads);
  if (!first) return false;
  const Address holder = gil_holder(memory, interpreter);
  const std::uint64_t main = main_pthread(memory);
  std::set<Address> seen;
  for (Address at = *first; at != 0 && threads.size() < kMostThreads;) {
    auto thread = thread_at(memory, at, interpreter, main);
    // A thread that was freed during the walk may lead back into the list.
    if (!thread || !seen.insert(at).second) return false;
    thread->holds_gil = holder == at;
    threads.push_back(*thread);
    at = thread->next;
  }
  return true;
}

// Each thread points back to its interpreter. If it doesn't, it was freed, or the layout is wrong.
std::optional<ProcessStacks::Thread> ProcessStacks::thread_at(Memory& memory, Address at,
                                                              Address interpreter,
                                                              std::uint64_t main_pthread) const {
  ObjectCopy copy;
  if (!copy.load(memory, at, layout_->thread_bytes)) return {};
  if (copy.pointer(layout_->interpreter) != interpreter) return {};
  Thread thread;
  thread.at = at;
  thread.interpreter = interpreter;
  thread.next = copy.pointer(layout_->next_thread);
  if (layout_->native_id != kNone) {
    thread.tid = static_cast<pid_t>(copy.pointer(layout_->native_id));
    thread.is_main = thread.tid == pid_;
  } else {
    thread.is_main = main_pthread != 0 && copy.pointer(layout_->thread_id) == main_pthread;
    if (thread.is_main) thread.tid = pid_;
  }
  return thread;
}

// Before 3.11, threads have no tid. But the runtime knows which pthread is the main thread.
std::uint64_t ProcessStacks::main_pthread(Memory& memory) const {
  if (layout_->native_id != kNone) return 0;
  return memory.value<std::uint64_t>(runtime_ + layout_->main_thread).value_or(0);
}

// Returns the thread that holds the GIL. 0: none does.
Address ProcessStacks::gil_holder(Memory& memory, Address interpreter) const {
  Address gil = runtime_;
  if (layout_->gil_pointer != kNone) {
    const auto pointer = memory.value<Address>(interpreter + layout_->gil_pointer);
    if (!pointer || *pointer == 0) return 0;
    gil = *pointer;
  }
  // A free-threaded build takes its GIL only if PYTHON_GIL or an extension module asks for it.
  if (layout_->gil_enabled != kNone) {
    const auto enabled = memory.value<std::int32_t>(gil + layout_->gil_enabled);
    if (!enabled || *enabled == 0) return 0;
  }
  Address holder = 0;
  std::int32_t locked = 0;
  const std::array<Piece, 2> pieces{
      Piece{gil + layout_->gil_holder, std::as_writable_bytes(std::span(&holder, 1))},
      Piece{gil + layout_->gil_locked, std::as_writable_bytes(std::span(&locked, 1))}};
  // CPython keeps the last holder after the GIL was released: the holder counts only if `locked` is
  // 1 in the same read.
  // -1: not initialized.
  if (memory.read_pieces(pieces) != pieces.size() || locked != 1) return 0;
  return holder;
}

ThreadStack ProcessStacks::stack_of(Memory& memory, const Thread& thread) {
  ThreadStack stack;
  stack.tid = thread.tid;
  stack.holds_gil = thread.holds_gil;
  const RawStack raw = walk_frames(memory, *layout_, thread.at);
  stack.whole = raw.whole;
  std::vector<Address> codes;
  for (const RawFrame& frame : raw.frames)
    codes.push_back(frame.code);
  codes_.refresh(memory, codes);
  for (const RawFrame& frame : raw.frames) {
    auto shown = frame_of(memory, frame);
    if (!shown) {
      // From here on the chain led astray.
      stack.whole = false;
      break;
    }
    stack.frames.push_back(*std::move(shown));
  }
  if (stack.whole && !layout_->ends_with_skipped() && lacks_caller(raw)) stack.whole = false;
  // Most likely the thread enters or leaves its first frame of a call from C. The kernel may have
  // taken its CPU just then, so that it stands still.
  if (raw.frames.empty() && thread.holds_gil) stack.whole = false;
  return stack;
}

// A generator has no caller while it is suspended, and a thread that runs may show it so, even
// twice in a row. A thread that really begins with a generator is taken for such a case; it needs
// _thread.start_new_thread(generator.__next__).
bool ProcessStacks::lacks_caller(const RawStack& raw) {
  if (raw.frames.empty()) return false;
  const Code* const outermost = codes_.find(raw.frames.back().code);
  return outermost != nullptr && outermost->generator;
}

std::optional<Frame> ProcessStacks::frame_of(Memory& memory, const RawFrame& raw) {
  Code* const code = codes_.find(raw.code);
  if (code == nullptr) return {};
  std::optional<std::int64_t> offset;
  if (!layout_->inline_bytecode()) {
    // 3.10 counts in units of two bytes, 3.8 and 3.9 in bytes.
    const auto index = static_cast<std::int64_t>(raw.instruction);
    offset = layout_->lines == LineTable::line_deltas ? index * 2 : index;
    if (index < -1 || *offset >= static_cast<std::int64_t>(code->bytes)) return {};
  } else {
    offset = offset_in(raw.code + layout_->bytecode, raw.instruction, code->bytes);
    // Free-threaded 3.14: each thread may run a copy of its own. The array of copies begins with
    // its size.
    if (!offset && raw.bytecode_index > 0 && code->identity.copies != 0)
      if (const auto copy = memory.value<Address>(
              code->identity.copies + 8 + Address{8} * static_cast<Address>(raw.bytecode_index)))
        offset = offset_in(*copy, raw.instruction, code->bytes);
    if (!offset) return {};
  }
  if (code->last_offset != *offset || code->last_line == 0) {
    code->last_line = line_at(layout_->lines, code->lines, code->identity.first_line, *offset);
    code->last_offset = *offset;
  }
  return Frame{code->function, code->file, code->last_line};
}

}  // namespace lockstep::stacks
