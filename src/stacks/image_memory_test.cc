#include "stacks/image_memory.h"

#include "stacks/bounded_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <string>

namespace lockstep::stacks {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string read_text(Memory& memory, Address at, std::size_t size) {
  std::string text(size, '?');
  return memory.read(at, std::as_writable_bytes(std::span(text))) ? text : "unreadable";
}

TEST(ImageMemory, RangesMergeAndLaterBytesWin) {
  ImageMemory memory;
  memory.put(100, bytes_of("abcd"));
  memory.put(104, bytes_of("efgh"));
  memory.put(102, bytes_of("XY"));
  memory.put(98, bytes_of("__"));
  EXPECT_EQ(read_text(memory, 98, 10), "__abXYefgh");
  EXPECT_EQ(read_text(memory, 98, 11), "unreadable");
  EXPECT_EQ(read_text(memory, 97, 2), "unreadable");
}

TEST(ImageMemory, IsLikeAMapOfBytes) {
  std::srand(1);
  ImageMemory memory;
  std::map<Address, char> truth;
  for (int i = 0; i < 300; ++i) {
    const Address at = static_cast<Address>(std::rand() % 400);
    const std::string text(static_cast<std::size_t>(std::rand() % 20 + 1),
                           static_cast<char>('a' + i % 26));
    memory.put(at, bytes_of(text));
    for (std::size_t j = 0; j < text.size(); ++j)
      truth[at + j] = text[j];
  }
  const ImageMemory again = ImageMemory::load(memory.save());
  for (ImageMemory copy : {memory, again})
    for (Address at = 0; at < 430; ++at)
      ASSERT_EQ(read_text(copy, at, 1),
                truth.contains(at) ? std::string(1, truth[at]) : "unreadable");
}

TEST(ImageMemory, StopsAtTheFirstPieceThatIsNotThere) {
  ImageMemory memory;
  memory.put(10, bytes_of("abcdef"));
  std::array<std::byte, 2> into{};
  const std::array<Piece, 3> pieces{Piece{10, into}, Piece{15, into}, Piece{12, into}};
  EXPECT_EQ(memory.read_pieces(pieces), 1U);
}

TEST(ImageMemory, ACutRecordingIsReadAsFarAsItGoes) {
  Recording recording{4096, 7, "python3.11", {}};
  recording.memory.put(1, bytes_of("abc"));
  recording.memory.put(100, bytes_of("def"));
  const std::string saved = save_recording(recording);
  const auto whole = load_recording(saved);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->start, 4096U);
  EXPECT_EQ(whole->pid, 7);
  EXPECT_EQ(whole->name, "python3.11");
  auto cut = load_recording(saved.substr(0, saved.size() - 1));
  ASSERT_TRUE(cut);
  EXPECT_EQ(read_text(cut->memory, 1, 3), "abc");
  EXPECT_EQ(read_text(cut->memory, 100, 1), "unreadable");
  EXPECT_FALSE(load_recording("1 2\n"));
  EXPECT_FALSE(load_recording("x 2 n\n"));
  EXPECT_FALSE(load_recording("1 2 n"));
}

TEST(BoundedMemory, RefusesOnceItIsExhausted) {
  ImageMemory memory;
  memory.put(0, bytes_of("abcdefgh"));
  BoundedMemory few(memory, {.pieces = 2, .time = std::chrono::seconds(60)});
  EXPECT_EQ(read_text(few, 0, 1), "a");
  EXPECT_EQ(read_text(few, 1, 1), "b");
  EXPECT_FALSE(few.exhausted());
  EXPECT_EQ(read_text(few, 2, 1), "unreadable");
  EXPECT_TRUE(few.exhausted());

  BoundedMemory late(memory, {.pieces = 2, .time = std::chrono::milliseconds(-1)});
  EXPECT_EQ(read_text(late, 0, 1), "unreadable");
}

}  // namespace
}  // namespace lockstep::stacks
