// The walk from _PyRuntime to lines: on pictures made for each layout, and on pictures recorded of
// real interpreters.
#include "stacks/process_stacks.h"

#include "base/utf8.h"
#include "io/fd.h"
#include "stacks/debug_offsets.h"
#include "stacks/debug_offsets_testing.h"
#include "stacks/fake_python_testing.h"
#include "stacks/find_python.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace lockstep::stacks {
namespace {

using Names = std::vector<std::string>;

Layout layout_for(int minor) {
  if (minor < 13) return layout_of({3, minor}).value();
  ImageMemory memory;
  std::vector<std::uint64_t> words(128);
  if (minor == 13)
    std::copy(kDescription313.begin(), kDescription313.end(), words.begin());
  else
    std::copy(kDescription314.begin(), kDescription314.end(), words.begin());
  memory.put(0, std::as_bytes(std::span(words)));
  return self_description(memory, 0).value().layout.value();
}

// Ten units of bytecode: 4 on the first line, 6 on the line after it.
std::vector<std::uint8_t> table_for(LineTable kind) {
  switch (kind) {
    case LineTable::lnotab:
      return {8, 1};
    case LineTable::line_deltas:
      return {8, 0, 12, 1};
    case LineTable::locations:
      return {0x80 | 10 << 3 | 3, 0, 0, 0x80 | 11 << 3 | 5, 0, 0};
  }
  return {};
}

// Two threads: main waits in `leaf` on line 12, called on line 20 of `root`; a helper in `loop`.
class StacksOf : public testing::TestWithParam<int> {
 protected:
  StacksOf() : python(layout_for(GetParam())) {
    const auto table = table_for(python.layout.lines);
    file = python.make_text("/home/me/train.py");
    leaf_code = python.make_code(python.make_text("leaf"), file, 11, table, 10);
    root_code = python.make_code(python.make_text("root"), file, 20, table, 10);
    loop_code = python.make_code(python.make_text("loop"), file, 30, table, 10);
    root = python.make_frame(root_code, 3, 0);
    leaf = python.make_frame(leaf_code, 7, root);
    loop = python.make_frame(loop_code, 0, 0);
    main = python.make_thread(700, leaf);
    helper = python.make_thread(701, loop);
    if (python.layout.main_thread != kNone)
      python.set(FakePython::kRuntime + python.layout.main_thread, std::uint64_t{700});
  }

  ProcessStacks stacks(ReadLimits limits = {.pieces = 100'000, .time = std::chrono::seconds(30)}) {
    return {python.layout, FakePython::kRuntime, 700, limits};
  }
  bool has_ids() const { return python.layout.native_id != kNone; }

  FakePython python;
  Address file = 0;
  Address leaf_code = 0, root_code = 0, loop_code = 0;
  Address root = 0, leaf = 0, loop = 0;
  Address main = 0, helper = 0;
};

INSTANTIATE_TEST_SUITE_P(Versions, StacksOf, testing::Range(8, 15));

TEST_P(StacksOf, AllThreads) {
  python.hold_gil(helper);
  const auto read = stacks().read(python.memory);
  ASSERT_TRUE(read);
  const std::string path = "/home/me/train.py";
  EXPECT_EQ(*read, (std::vector<ThreadStack>{
                       {has_ids() ? 701 : 0, true, true, {{"loop", path, 30}}},
                       {700, false, true, {{"leaf", path, 12}, {"root", path, 20}}}}));
}

TEST_P(StacksOf, TheMainThreadAgainAndAgain) {
  auto reader = stacks();
  for (int i = 0; i < 3; ++i) {
    const auto read = reader.read_main(python.memory);
    ASSERT_TRUE(read && *read);
    EXPECT_EQ((*read)->tid, 700);
    EXPECT_EQ((*read)->frames[0].line, i < 2 ? 12 : 11);
    EXPECT_EQ((*read)->holds_gil, i == 1);
    python.hold_gil(i == 0 ? main : 0);
    if (i == 1)
      python.memory = [&] {  // the function jumps back
        const Address other = python.make_frame(leaf_code, 1, root);
        Address top = main + python.layout.frame;
        if (python.layout.frame_of_cframe != kNone)
          top = python.memory.value<Address>(top).value() + python.layout.frame_of_cframe;
        python.set(top, other);
        return python.memory;
      }();
  }
}

TEST_P(StacksOf, AnEndedMainThreadIsLookedForAnew) {
  auto reader = stacks();
  ASSERT_TRUE(reader.read_main(python.memory).value());
  python.set(main + python.layout.interpreter, Address{0});    // freed
  python.set(helper + python.layout.next_thread, Address{0});  // and not in the list
  const auto read = reader.read_main(python.memory);
  ASSERT_TRUE(read);
  EXPECT_FALSE(*read);
}

TEST_P(StacksOf, FramesOfTheInterpreterItselfAreSkipped) {
  if (python.layout.version < Version{3, 12}) return;
  for (std::uint8_t owner = kSkipped; owner <= kHighestOwner; ++owner) {
    const Address entry = python.make_frame(0, 0, leaf, owner);
    python.make_thread(710 + owner, python.make_frame(loop_code, 1, entry));
  }
  const auto read = stacks().read(python.memory);
  ASSERT_TRUE(read);
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_TRUE((*read)[i].whole);
    ASSERT_EQ((*read)[i].frames.size(), 3U);
    EXPECT_EQ((*read)[i].frames[1].function, "leaf");
  }
}

TEST_P(StacksOf, AFrameThatHasNotBegunIsOnTheFirstLine) {
  python.make_thread(702, python.make_frame(leaf_code, -1, root));
  const auto read = stacks().read(python.memory);
  ASSERT_TRUE(read);
  EXPECT_EQ((*read)[0].frames.at(0).line, 11);
}

TEST_P(StacksOf, AThreadWithoutFrames) {
  const Address thread = python.make_thread(702, 0);
  const auto read = stacks().read(python.memory);
  ASSERT_TRUE(read);
  EXPECT_TRUE((*read)[0].whole);
  EXPECT_TRUE((*read)[0].frames.empty());

  python.hold_gil(thread);  // it is about to run
  const auto running = stacks().read(python.memory);
  ASSERT_TRUE(running);
  EXPECT_FALSE((*running)[0].whole);
}

TEST_P(StacksOf, DeepStacksKeepTheInnermostFrames) {
  Address frame = root;
  for (std::size_t i = 1; i < kMostFrames; ++i)
    frame = python.make_frame(loop_code, 0, frame);
  python.make_thread(702, frame);
  python.make_thread(703, python.make_frame(leaf_code, 0, frame));
  const auto read = stacks().read(python.memory);
  ASSERT_TRUE(read);
  EXPECT_EQ((*read)[0].frames.size(), kMostFrames);
  EXPECT_FALSE((*read)[0].whole);
  EXPECT_EQ((*read)[0].frames[0].function, "leaf");
  EXPECT_EQ((*read)[1].frames.size(), kMostFrames);
  EXPECT_TRUE((*read)[1].whole);
  EXPECT_EQ((*read)[1].frames.back().function, "root");
}

// As a running generator may look: suspended between two reads.
TEST_P(StacksOf, AFrameThatIsCutOffFromItsCaller) {
  python.set(leaf + python.layout.previous, Address{0});
  if (python.layout.flags != kNone)
    python.set(leaf_code + python.layout.flags, std::uint32_t{0x20});
  const auto read = stacks().read(python.memory);
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->back().whole);
  EXPECT_EQ(read->back().frames.size(), 1U);
}

TEST_P(StacksOf, PointersInCirclesEnd) {
  python.set(root + python.layout.previous, leaf);
  const auto circle = stacks().read(python.memory);
  ASSERT_TRUE(circle);
  EXPECT_FALSE((*circle)[1].whole);
  EXPECT_EQ((*circle)[1].frames.size(), kMostFrames);

  python.set(main + python.layout.next_thread, helper);
  const auto threads = stacks().read(python.memory);
  ASSERT_TRUE(threads);
  EXPECT_EQ(threads->size(), 2U);

  python.set(python.interpreter + python.layout.next_interpreter, python.interpreter);
  ASSERT_TRUE(stacks().read(python.memory));
}

TEST_P(StacksOf, FramesAstrayEndTheStack) {
  const auto astray = [&](const std::function<void()>& damage) {
    const ImageMemory before = python.memory;
    damage();
    const auto read = stacks().read(python.memory);
    python.memory = before;
    EXPECT_TRUE(read);
    const ThreadStack& stack = read->back();
    EXPECT_FALSE(stack.whole);
    Names names;
    for (const Frame& frame : stack.frames)
      names.push_back(frame.function);
    return names;
  };
  const Layout& layout = python.layout;
  EXPECT_EQ(astray([&] { python.set(leaf + layout.previous, Address{0x123450}); }), Names{"leaf"});
  EXPECT_EQ(astray([&] { python.set(leaf + layout.previous, root + 1); }), Names{});
  EXPECT_EQ(astray([&] { python.set(root + layout.code, file); }), Names{"leaf"});
  EXPECT_EQ(astray([&] { python.set(root + layout.code, Address{0}); }), Names{"leaf"});
  EXPECT_EQ(astray([&] { python.set(root_code + layout.type, Address{0}); }), Names{"leaf"});
  EXPECT_EQ(astray([&] { python.set(root_code + layout.name, root_code); }), Names{"leaf"});
  EXPECT_EQ(astray([&] { python.set(root_code + layout.line_table, file); }), Names{"leaf"});
  // An instruction of another function.
  EXPECT_EQ(astray([&] {
              if (layout.inline_bytecode())
                python.set(root + layout.instruction, leaf_code + layout.bytecode);
              else
                python.set(root + layout.instruction, std::int32_t{20});
            }),
            Names{"leaf"});
}

TEST_P(StacksOf, AnotherFunctionAtTheSameAddressIsNoticed) {
  auto reader = stacks();
  ASSERT_EQ(reader.read(python.memory)->back().frames[0].function, "leaf");
  python.set(leaf_code + python.layout.name, python.make_text("other"));
  EXPECT_EQ(reader.read(python.memory)->back().frames[0].function, "other");
}

TEST_P(StacksOf, AnInterpreterThatHasNotBegun) {
  python.set(FakePython::kRuntime + python.layout.interpreters, Address{0});
  EXPECT_EQ(stacks().read(python.memory).error(), Unreadable::starting);
  EXPECT_EQ(stacks().check(python.memory).error(), Unreadable::starting);
}

TEST_P(StacksOf, OtherDataThanTheLayoutSays) {
  python.set(helper + python.layout.interpreter, helper);
  EXPECT_EQ(stacks().check(python.memory).error(), Unreadable::changed);
  ImageMemory empty;
  EXPECT_EQ(stacks().read(empty).error(), Unreadable::changed);
  EXPECT_EQ(stacks().read_main(empty).error(), Unreadable::changed);
}

TEST_P(StacksOf, ReadsAreLimitedAndWhatWasFoundUntilThenIsKept) {
  std::set<std::size_t> counts;
  for (std::size_t pieces = 0; pieces < 60; ++pieces) {
    auto reader = stacks({.pieces = pieces, .time = std::chrono::seconds(30)});
    const auto read = reader.read(python.memory);
    if (!read) {
      EXPECT_EQ(read.error(), Unreadable::slow) << pieces;
      EXPECT_EQ(reader.check(python.memory).error(), Unreadable::slow) << pieces;
      continue;
    }
    counts.insert(read->size());
    for (const ThreadStack& stack : *read)
      EXPECT_TRUE(!stack.whole || !stack.frames.empty());
  }
  EXPECT_EQ(counts, (std::set<std::size_t>{1, 2}));
}

// Passes reads on, and lets the process do something after some of them.
class MovingMemory final : public Memory {
 public:
  MovingMemory(ImageMemory& memory, std::function<void(int)> step)
      : memory_(memory), step_(std::move(step)) {}
  std::size_t read_pieces(std::span<const Piece> pieces) override {
    const std::size_t got = memory_.read_pieces(pieces);
    step_(reads_++);
    return got;
  }

 private:
  ImageMemory& memory_;
  std::function<void(int)> step_;
  int reads_ = 0;
};

// The main thread returns from `leaf` and calls `loop`, at each possible moment.
TEST_P(StacksOf, AChangeDuringTheLook) {
  const Address top = [&] {
    const Address at = main + python.layout.frame;
    if (python.layout.frame_of_cframe == kNone) return at;
    return python.memory.value<Address>(at).value() + python.layout.frame_of_cframe;
  }();
  const Address called = python.make_frame(loop_code, 1, root);
  for (int moment = 0; moment < 40; ++moment) {
    python.set(top, leaf);
    MovingMemory memory(python.memory, [&](int reads) {
      if (reads == moment) python.set(top, called);
    });
    auto reader = stacks();
    const auto read = reader.read(memory);
    ASSERT_TRUE(read);
    const ThreadStack& stack = read->back();
    EXPECT_TRUE(stack.whole);  // it stands still afterwards
    ASSERT_EQ(stack.frames.size(), 2U);
    EXPECT_EQ(stack.frames[1].function, "root");
  }
}

// The main thread never stands still: each time, it is in another call of `loop`.
TEST_P(StacksOf, AThreadThatAlwaysMoves) {
  Address top = main + python.layout.frame;
  if (python.layout.frame_of_cframe != kNone)
    top = python.memory.value<Address>(top).value() + python.layout.frame_of_cframe;
  std::vector<Address> calls;
  calls.reserve(50);
  for (int i = 0; i < 50; ++i)
    calls.push_back(python.make_frame(loop_code, i % 10, root));
  MovingMemory memory(python.memory, [&](int reads) {
    python.set(top, calls[static_cast<std::size_t>(reads) % calls.size()]);
  });
  const auto read = stacks().read(memory);
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->back().whole);
  ASSERT_EQ(read->back().frames.size(), 2U);
  EXPECT_EQ(read->back().frames[0].function, "loop");
  EXPECT_EQ(read->back().frames[1].function, "root");
}

TEST(ProcessStacks, ThousandsOfThreadsAreCut) {
  FakePython python(layout_for(12));
  const Address code = python.make_code(python.make_text("wait"), python.make_text("a.py"), 1,
                                        table_for(python.layout.lines), 10);
  for (int i = 0; i < 2'000; ++i)
    python.make_thread(i + 1, python.make_frame(code, 1, 0));
  ProcessStacks stacks(python.layout, FakePython::kRuntime, 1,
                       {.pieces = 100'000, .time = std::chrono::seconds(30)});
  const auto read = stacks.read(python.memory);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->size(), kMostThreads);
}

// Free-threaded 3.14: a thread runs a copy of the bytecode.
TEST(ProcessStacks, CopiesOfBytecode) {
  Layout layout = layout_for(14);
  layout.bytecode_index = 76;
  layout.bytecode_copies = 216;
  layout.gil_enabled = 32;
  layout.text_kind_bit = 8;
  ASSERT_TRUE(complete(layout));
  FakePython python(layout);
  const Address code = python.make_code(python.make_text("step"), python.make_text("a.py"), 5,
                                        table_for(layout.lines), 10);
  const Address copy = python.take(20);
  const Address copies = python.take(32);
  python.set(copies, std::int64_t{2});
  python.set(copies + 8, code + layout.bytecode);
  python.set(copies + 16, copy);
  python.set(code + layout.bytecode_copies, copies);
  const Address frame = python.make_frame(code, 0, 0);
  python.set(frame + layout.instruction, copy + 10);
  python.set(frame + layout.bytecode_index, std::int32_t{1});
  python.hold_gil(python.make_thread(7, frame));
  ProcessStacks stacks(layout, FakePython::kRuntime, 7);
  const auto on = stacks.read_main(python.memory);
  ASSERT_TRUE(on && *on);
  EXPECT_EQ((*on)->frames.at(0), (Frame{"step", "a.py", 6}));
  EXPECT_TRUE((*on)->holds_gil);
  python.set(python.gil + layout.gil_enabled, std::int32_t{0});
  EXPECT_FALSE(stacks.read_main(python.memory).value()->holds_gil);
}

// tests/fuzz/corpus/stacks has what a read looked at in real interpreters, each running
// tests/support/workers/stacks_recorded.py.
class Recorded : public testing::TestWithParam<const char*> {};

TEST_P(Recorded, IsReadAsTheInterpreterSaysItself) {
  const std::string version = GetParam();
  const auto saved = io::read_file(std::string(STACKS_RECORDINGS) + "/" + version);
  ASSERT_TRUE(saved);
  auto recording = load_recording(*saved);
  ASSERT_TRUE(recording);
  const auto found =
      find_python(recording->memory, {{recording->start, 0, "/usr/lib/" + recording->name, false}},
                  [](const MappedFile&) { return nullptr; });
  ASSERT_TRUE(found && found->layout);
  EXPECT_EQ(found->version, version);
  ProcessStacks stacks(*found->layout, found->runtime, recording->pid);
  const auto read = stacks.read(recording->memory);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 2U);
  const bool qualified = found->layout->version >= Version{3, 11};
  const std::string file = "/tmp/recorded/d\xc3\xa4ta_\xe6\x96\x87.py";
  const std::vector<Frame> main{{"wait_\xc3\xa4\xe6\x96\x87", file, 9},
                                {qualified ? "Model.forward.<locals>.items" : "items", file, 16},
                                {qualified ? "Model.forward" : "forward", file, 18},
                                {"<module>", file, 23}};
  const ThreadStack& stack = read->back();
  EXPECT_EQ(stack.tid, recording->pid);
  EXPECT_TRUE(stack.whole);
  ASSERT_GT(stack.frames.size(), 4U);
  EXPECT_EQ(std::vector<Frame>(stack.frames.begin(), stack.frames.begin() + 4), main);
  EXPECT_EQ(stacks.read_main(recording->memory).value(), stack);
}

INSTANTIATE_TEST_SUITE_P(Versions, Recorded,
                         testing::Values("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"));

}  // namespace
}  // namespace lockstep::stacks
