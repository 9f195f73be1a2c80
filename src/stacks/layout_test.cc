#include "stacks/layout.h"

#include "stacks/debug_offsets.h"
#include "stacks/debug_offsets_testing.h"
#include "stacks/image_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

namespace lockstep::stacks {
namespace {

constexpr Address kRuntime = 0x1000;

std::optional<SelfDescription> described(std::vector<std::uint64_t> words) {
  ImageMemory memory;
  words.resize(128);  // _PyRuntime is much larger than its description
  memory.put(kRuntime, std::as_bytes(std::span(words)));
  return self_description(memory, kRuntime);
}

template <std::size_t size>
std::vector<std::uint64_t> words(const std::array<std::uint64_t, size>& from) {
  return {from.begin(), from.end()};
}

TEST(Layout, IsKnownFor38To312) {
  for (int minor = 8; minor <= 12; ++minor)
    EXPECT_EQ(layout_of({3, minor}).value().version, (Version{3, minor}));
  for (const Version other : {Version{2, 7}, Version{3, 7}, Version{3, 13}, Version{4, 8}})
    EXPECT_FALSE(layout_of(other));
}

TEST(SelfDescription, OfPython313) {
  const auto made = described(words(kDescription313));
  ASSERT_TRUE(made && made->layout);
  EXPECT_EQ(made->version, (Version{3, 13}));
  const Layout& layout = *made->layout;
  EXPECT_EQ(layout.version, (Version{3, 13}));
  EXPECT_EQ(layout.interpreters, 632U);
  EXPECT_EQ(layout.threads, 7344U);
  EXPECT_EQ(layout.gil_pointer, 16U);
  EXPECT_EQ(layout.gil_holder, 8U);
  EXPECT_EQ(layout.gil_locked, 16U);
  EXPECT_EQ(layout.native_id, 160U);
  EXPECT_EQ(layout.frame, 72U);
  EXPECT_EQ(layout.owner, 70U);
  EXPECT_EQ(layout.bytecode, 200U);
  EXPECT_EQ(layout.text_ascii, 40U);
  EXPECT_EQ(layout.text_compact, 56U);
}

TEST(SelfDescription, OfPython314) {
  const auto made = described(words(kDescription314));
  ASSERT_TRUE(made && made->layout);
  EXPECT_EQ(made->version, (Version{3, 14}));
  const Layout& layout = *made->layout;
  EXPECT_EQ(layout.interpreters, 808U);
  EXPECT_EQ(layout.threads, 7344U);
  EXPECT_EQ(layout.gil_holder, 8U);
  EXPECT_EQ(layout.gil_locked, 16U);
  EXPECT_EQ(layout.gil_enabled, kNone);
  EXPECT_EQ(layout.owner, 74U);
  EXPECT_EQ(layout.bytecode, 208U);
  EXPECT_EQ(layout.bytecode_copies, kNone);
  EXPECT_EQ(layout.bytes_data, 32U);
  EXPECT_EQ(layout.text_state, 32U);
  EXPECT_EQ(layout.text_compact, 56U);
}

TEST(SelfDescription, OfAnUnknownVersionHasNoLayout) {
  auto later = words(kDescription314);
  later[1] = 0x30f00f0;
  const auto made = described(later);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->version, (Version{3, 15}));
  EXPECT_FALSE(made->layout);
}

TEST(SelfDescription, IsAbsentBefore313) {
  EXPECT_FALSE(described({0x1234}));
  ImageMemory none;
  EXPECT_FALSE(self_description(none, kRuntime));
}

// Each of the 80 words becomes absurd in turn: the layout is refused, or still within limits.
TEST(SelfDescription, AbsurdOffsetsAreRefused) {
  for (std::size_t i = 2; i < kDescription314.size(); ++i) {
    for (const std::uint64_t absurd :
         {~std::uint64_t{0}, std::uint64_t{1} << 32, std::uint64_t{600}}) {
      auto damaged = words(kDescription314);
      damaged[i] = absurd;
      const auto made = described(damaged);
      ASSERT_TRUE(made);
      if (!made->layout) continue;
      EXPECT_LE(made->layout->thread_bytes, ObjectCopy::kLimit);
      EXPECT_LE(made->layout->frame_bytes, ObjectCopy::kLimit);
      EXPECT_LE(made->layout->code_bytes, ObjectCopy::kLimit);
      EXPECT_LE(made->layout->text_compact + 8, ObjectCopy::kLimit);
    }
  }
}

TEST(SelfDescription, AFreeThreadedBuildHasCopiesOfBytecode) {
  auto free_threaded = words(kDescription314);
  free_threaded[2] = 1;
  const auto made = described(free_threaded);
  ASSERT_TRUE(made && made->layout);
  EXPECT_EQ(made->layout->gil_enabled, 0U);
  EXPECT_NE(made->layout->bytecode_copies, kNone);
}

}  // namespace
}  // namespace lockstep::stacks
