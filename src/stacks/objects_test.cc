#include "stacks/objects.h"

#include "base/utf8.h"
#include "stacks/fake_python_testing.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::stacks {
namespace {

template <class Char>
std::string utf8_of(const std::vector<Char>& characters) {
  return to_utf8(std::as_bytes(std::span(characters)), sizeof(Char));
}

TEST(ToUtf8, CharactersOfOneTwoAndFourBytes) {
  EXPECT_EQ(utf8_of<std::uint8_t>({'a', 0x1b, 0x7f, 0x80, 0xe9}), "a\x1b\x7f\xc2\x80\xc3\xa9");
  EXPECT_EQ(utf8_of<std::uint16_t>({'a', 0x7ff, 0x800, 0x6587}),
            "a\xdf\xbf\xe0\xa0\x80\xe6\x96\x87");
  EXPECT_EQ(utf8_of<std::uint32_t>({'a', 0x6587, 0x10000, 0x10ffff}),
            "a\xe6\x96\x87\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
  EXPECT_EQ(utf8_of<std::uint16_t>({}), "");
}

// A file name that is not UTF-8 has lone surrogates in Python.
TEST(ToUtf8, WhatIsNoCharacterIsReplaced) {
  EXPECT_EQ(utf8_of<std::uint16_t>({0xd800, 0xdcff, 0xdfff, 0xe000}),
            "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xee\x80\x80");
  EXPECT_EQ(utf8_of<std::uint32_t>({0x110000, 0xffffffff}), "\xef\xbf\xbd\xef\xbf\xbd");
}

class ObjectsOf : public testing::TestWithParam<int> {
 protected:
  FakePython python{layout_of({3, GetParam()}).value()};
  Objects objects{python.layout};
};

TEST_P(ObjectsOf, TextsAreRead) {
  ImageMemory& memory = python.memory;
  EXPECT_EQ(objects.text(memory, python.make_text("forward"), 100), "forward");
  EXPECT_EQ(objects.text(memory, python.make_text("forward"), 3), "for");
  EXPECT_EQ(objects.text(memory, python.make_text(""), 3), "");
  const std::u16string two = u"d\u00e4\u6587";
  EXPECT_EQ(objects.text(memory, python.make_text(std::as_bytes(std::span(two)), 2, false), 100),
            "d\xc3\xa4\xe6\x96\x87");
  const std::u32string four = U"x\U0001f600";
  EXPECT_EQ(objects.text(memory, python.make_text(std::as_bytes(std::span(four)), 4, false), 100),
            "x\xf0\x9f\x98\x80");
}

TEST_P(ObjectsOf, OtherTypesAreRefused) {
  ImageMemory& memory = python.memory;
  const Address text = python.make_text("forward");
  const Address bytes = python.make_bytes({1, 2, 3});
  EXPECT_EQ(objects.text(memory, bytes, 100), std::nullopt);
  EXPECT_EQ(objects.bytes(memory, text, 100), std::nullopt);
  EXPECT_EQ(objects.bytes(memory, bytes, 3), (std::vector<std::uint8_t>{1, 2, 3}));
  EXPECT_EQ(objects.bytes(memory, bytes, 2), std::nullopt);
  EXPECT_EQ(objects.text(memory, 0, 100), std::nullopt);
  EXPECT_EQ(objects.text(memory, 12345, 100), std::nullopt);
  // Once the type is known, only its address counts.
  EXPECT_EQ(objects.text(memory, text, 100), "forward");
  EXPECT_EQ(objects.text(memory, bytes, 100), std::nullopt);
}

TEST_P(ObjectsOf, ALengthAstrayIsRefused) {
  const Address text = python.make_text("forward");
  python.set(text + python.layout.text_length, std::uint64_t{1} << 60);
  EXPECT_EQ(objects.text(python.memory, text, 4096), std::nullopt);
  const Address bytes = python.make_bytes({1});
  python.set(bytes + python.layout.size, std::int64_t{-1});
  EXPECT_EQ(objects.bytes(python.memory, bytes, 1U << 20), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Versions, ObjectsOf, testing::Values(8, 10, 11, 12));

}  // namespace
}  // namespace lockstep::stacks
