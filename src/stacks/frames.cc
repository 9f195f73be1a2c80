// Walks frames and checks that the walk holds together.
#include "stacks/frames.h"

#include "stacks/read_ahead.h"

#include <algorithm>
#include <utility>

namespace lockstep::stacks {
namespace {

constexpr int kWalks = 4;
// Frames of the interpreter itself are not kept, so a walk visits more frames than it keeps. At
// most one of them lies between two frames of Python.
constexpr std::size_t kMostVisits = 2 * kMostFrames + 2;

// Where the pointer to the innermost frame is, and what it says.
struct Top {
  Address cframe_at = 0;  // 3.11 and 3.12: where the pointer to the _PyCFrame is
  Address cframe = 0;
  Address frame_at = 0;
  Address frame = 0;
};

std::optional<Top> read_top(Memory& memory, const Layout& layout, Address thread) {
  Top top;
  top.frame_at = thread + layout.frame;
  if (layout.frame_of_cframe != kNone) {
    top.cframe_at = top.frame_at;
    const auto cframe = memory.value<Address>(top.cframe_at);
    if (!cframe || *cframe == 0) return {};
    top.cframe = *cframe;
    top.frame_at = *cframe + layout.frame_of_cframe;
  }
  const auto frame = memory.value<Address>(top.frame_at);
  if (!frame) return {};
  top.frame = *frame;
  return top;
}

// From 3.13 on, the pointer to the code object carries a tag in its low bits.
Address untagged(Address pointer) {
  return pointer & ~Address{7};
}

std::optional<RawFrame> raw_frame(const ObjectCopy& copy, const Layout& layout, Address at) {
  RawFrame frame;
  frame.at = at;
  frame.previous = copy.pointer(layout.previous);
  frame.code = untagged(copy.pointer(layout.code));
  frame.instruction = layout.inline_bytecode()
                          ? copy.get<std::uint64_t>(layout.instruction)
                          : static_cast<std::uint64_t>(copy.get<std::int32_t>(layout.instruction));
  if (layout.bytecode_index != kNone)
    frame.bytecode_index = copy.get<std::int32_t>(layout.bytecode_index);
  if (layout.owner != kNone) {
    const auto owner = copy.get<std::uint8_t>(layout.owner);
    if (owner > kHighestOwner) return {};
    frame.skipped = owner >= kSkipped;
  }
  // Frames are aligned: another pointer is the rest of a frame that was freed.
  if (frame.previous % 8 != 0) return {};
  return frame;
}

struct Walk {
  std::vector<RawFrame> frames;
  bool to_the_end = false;
  bool too_deep = false;
};

// From 3.12 on, only a frame of the interpreter itself can be the outermost one. Another frame has
// no caller while it begins, or while its generator is suspended.
bool is_outermost(const Layout& layout, const std::vector<RawFrame>& frames) {
  return frames.empty() || !layout.ends_with_skipped() || frames.back().skipped;
}

Walk walk_once(Memory& memory, const Layout& layout, Address innermost) {
  // Before 3.11, each frame is an object on the heap, and its page holds no other frame.
  ReadAhead ahead(memory, layout.inline_bytecode());
  Walk walk;
  std::size_t kept = 0;
  Address at = innermost;
  while (at != 0 && at % 8 == 0) {
    ObjectCopy copy;
    if (!ahead.load(copy, at, layout.frame_bytes)) return walk;
    const auto frame = raw_frame(copy, layout, at);
    if (!frame) return walk;
    if ((kept == kMostFrames && !frame->skipped) || walk.frames.size() == kMostVisits) {
      walk.too_deep = true;
      return walk;
    }
    walk.frames.push_back(*frame);
    kept += frame->skipped ? 0 : 1;
    at = frame->previous;
  }
  walk.to_the_end = at == 0 && is_outermost(layout, walk.frames);
  return walk;
}

// Reads the whole chain once more, by one call, so that all of it comes from (nearly) one moment.
// The pointer to the innermost frame is read before and after: each call and return changes it.
bool unchanged(Memory& memory, const Layout& layout, const Top& top,
               const std::vector<RawFrame>& frames) {
  std::vector<ObjectCopy> copies(frames.size());
  std::array<Address, 3> pointers{};
  const auto into = [&](std::size_t i) {
    return std::as_writable_bytes(std::span(pointers).subspan(i, 1));
  };
  std::vector<Piece> pieces{{top.frame_at, into(0)}};
  for (std::size_t i = 0; i < frames.size(); ++i)
    pieces.push_back(copies[i].piece(frames[i].at, layout.frame_bytes));
  pieces.push_back({top.frame_at, into(1)});
  if (top.cframe_at != 0) pieces.push_back({top.cframe_at, into(2)});
  if (memory.read_pieces(pieces) != pieces.size()) return false;
  if (pointers != std::array<Address, 3>{top.frame, top.frame, top.cframe}) return false;
  for (std::size_t i = 0; i < frames.size(); ++i)
    if (copies[i].pointer(layout.previous) != frames[i].previous ||
        untagged(copies[i].pointer(layout.code)) != frames[i].code)
      return false;
  return true;
}

}  // namespace

RawStack walk_frames(Memory& memory, const Layout& layout, Address thread) {
  RawStack made;
  for (int i = 0; i < kWalks && !made.whole; ++i) {
    const auto top = read_top(memory, layout, thread);
    if (!top) continue;
    Walk walk = walk_once(memory, layout, top->frame);
    const bool holds =
        (walk.to_the_end || walk.too_deep) && unchanged(memory, layout, *top, walk.frames);
    made.frames = std::move(walk.frames);
    made.whole = holds && walk.to_the_end;
    // A stack above the limit is consistent, but not whole. Another walk would end at the same
    // frame.
    if (holds) break;
  }
  std::erase_if(made.frames, [](const RawFrame& frame) { return frame.skipped; });
  return made;
}

}  // namespace lockstep::stacks
