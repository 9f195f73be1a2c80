#include "top/keys.h"

#include <gtest/gtest.h>

#include <random>

namespace lockstep::top {
namespace {

using Kind = Key::Kind;

std::vector<Key> keys_in(const std::string& bytes) {
  KeyReader reader;
  return reader.feed(bytes);
}

TEST(Keys, OfAKeyboard) {
  EXPECT_EQ(keys_in("q"), (std::vector<Key>{{Kind::text, "q"}}));
  EXPECT_EQ(keys_in("\r\n\x7f\b"),
            (std::vector<Key>{{Kind::enter}, {Kind::enter}, {Kind::backspace}, {Kind::backspace}}));
  EXPECT_EQ(keys_in("\x1b[A\x1bOB\x1b[5~\x1b[6~"),
            (std::vector<Key>{{Kind::up}, {Kind::down}, {Kind::page_up}, {Kind::page_down}}));
  EXPECT_EQ(keys_in("\x1b[H\x1b[4~\x1b[D"),
            (std::vector<Key>{{Kind::home}, {Kind::end}, {Kind::escape}}));
  EXPECT_EQ(keys_in("\x1b"), (std::vector<Key>{{Kind::escape}}));
  EXPECT_EQ(keys_in("\xc3\xb6"), (std::vector<Key>{{Kind::text, "\xc3\xb6"}}));
}

TEST(Keys, AreReadFromAnyPieces) {
  KeyReader reader;
  EXPECT_TRUE(reader.feed("\x1b[").empty());
  EXPECT_EQ(reader.feed("A"), (std::vector<Key>{{Kind::up}}));
  EXPECT_TRUE(reader.feed("\xc3").empty());
  EXPECT_EQ(reader.feed("\xb6"), (std::vector<Key>{{Kind::text, "\xc3\xb6"}}));
}

TEST(Keys, UnknownSequencesAreNone) {
  EXPECT_EQ(keys_in("\x1b[<0;10;5Mq"), (std::vector<Key>{{Kind::text, "q"}}));
  EXPECT_EQ(keys_in("\x01\x1a\xffq"), (std::vector<Key>{{Kind::text, "q"}}));
  EXPECT_TRUE(keys_in("\x1b[" + std::string(100, ';')).empty());
}

// Whatever comes, the reader holds little and goes on.
TEST(Keys, OfNoise) {
  std::mt19937 random(3);
  KeyReader reader;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 40, ' ');
    for (char& c : bytes)
      c = "\x1b[O0;~AqZ\xc3\xe2\x82\xf0\x01\r"[random() % 15];
    (void)reader.feed(bytes);
  }
  (void)reader.feed(std::string(40, 'A'));
  EXPECT_EQ(reader.feed("q"), (std::vector<Key>{{Kind::text, "q"}}));
}

}  // namespace
}  // namespace lockstep::top
