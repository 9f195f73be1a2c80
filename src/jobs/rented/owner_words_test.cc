#include "jobs/rented/owner_words.h"

#include <gtest/gtest.h>

namespace lockstep::jobs::rented {
namespace {

TEST(OwnerWords, ATerminalGetsNoControlOfTheHost) {
  EXPECT_EQ(printable_lines("\x1b[2Jone\r\n\xc2\x9b\xe2\x80\xae\n\ntwo"),
            "\\x1b[2Jone\\x0d\n\\xc2\\x9b\\xe2\\x80\\xae\n\ntwo\n");
  EXPECT_EQ(printable_lines(""), "");
}

TEST(OwnerWords, ALongLineOfAWholeAnswerIsNotCut) {
  const std::string json = "{\"" + std::string(3 * OwnerWords::kMostLine, 'x') + "\": 1}\n";
  EXPECT_EQ(printable_lines(json), json);
}

TEST(OwnerWords, LinesAreShownOnceTheyEnd) {
  OwnerWords words;
  EXPECT_EQ(words.take("'lab' is be"), "");
  EXPECT_EQ(words.take("ing terminated\n'la"), "'lab' is being terminated\n");
  EXPECT_EQ(words.end(), "'la\n");
  EXPECT_EQ(words.end(), "");
}

TEST(OwnerWords, ALineWithoutAnEndTakesNoMemory) {
  OwnerWords words;
  std::string shown;
  for (int i = 0; i < 10; ++i)
    shown += words.take(std::string(OwnerWords::kMostLine / 5, 'x'));
  EXPECT_EQ(shown, "");
  EXPECT_EQ(words.take("\nnext\n"), std::string(OwnerWords::kMostLine, 'x') + "...\nnext\n");
}

TEST(OwnerWords, AFloodEndsWithALineThatSaysSo) {
  OwnerWords words(10);
  EXPECT_EQ(words.take("one\ntwo\nthree\n"),
            "one\ntwo\nth\nthe host says more, which is not shown\n");
  EXPECT_EQ(words.take("four\n"), "");
  EXPECT_EQ(words.end(), "");
}

}  // namespace
}  // namespace lockstep::jobs::rented
