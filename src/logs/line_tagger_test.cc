#include "logs/line_tagger.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace lockstep::logs {
namespace {
constexpr std::string_view kPrefix = "[d0]:";

std::string tagged(const std::vector<std::string>& chunks, std::string_view prefix = kPrefix) {
  LineTagger tagger{std::string(prefix)};
  ByteQueue out;
  for (const auto& chunk : chunks)
    tagger.feed(chunk, out);
  tagger.flush(out);
  return std::string(out.view());
}

// Removes the prefix from the start of every segment: the inverse of the tagger.
std::string untagged(std::string_view text) {
  std::string out;
  bool at_start = true;
  while (!text.empty()) {
    if (at_start && !(out.ends_with('\r') && text.front() == '\n')) {
      EXPECT_TRUE(text.starts_with(kPrefix));
      text.remove_prefix(std::min(kPrefix.size(), text.size()));
      if (text.empty()) break;
    }
    out += text.front();
    at_start = text.front() == '\n' || text.front() == '\r';
    text.remove_prefix(1);
  }
  return out;
}

std::string random_text(std::mt19937& random, std::size_t size) {
  constexpr std::string_view kBytes("ab\n\r\0\xff\xc3[", 8);
  std::string text(size, ' ');
  for (char& c : text)
    c = kBytes[random() % kBytes.size()];
  return text;
}

std::vector<std::string> cut_up(std::mt19937& random, std::string_view text, std::size_t most) {
  std::vector<std::string> chunks;
  while (!text.empty()) {
    const std::size_t size = std::min<std::size_t>(1 + random() % most, text.size());
    chunks.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return chunks;
}

TEST(LineTagger, PutsThePrefixBeforeEveryLine) {
  EXPECT_EQ(tagged({"one\ntwo\n"}), "[d0]:one\n[d0]:two\n");
  EXPECT_EQ(tagged({"\n\nx\n"}), "[d0]:\n[d0]:\n[d0]:x\n");
  EXPECT_EQ(tagged({"no end"}), "[d0]:no end");
  EXPECT_EQ(tagged({""}), "");
}

TEST(LineTagger, CarriageReturnsBeginASegmentAndCrLfIsOneEnd) {
  EXPECT_EQ(tagged({"10%\r20%\r\nx"}), "[d0]:10%\r[d0]:20%\r\n[d0]:x");
  EXPECT_EQ(tagged({"a\r", "\nb\n"}), "[d0]:a\r\n[d0]:b\n");
  EXPECT_EQ(tagged({"\r\r\n"}), "[d0]:\r[d0]:\r\n");
}

TEST(LineTagger, PassesNulAndBrokenUtf8) {
  const std::string bytes("a\0\xff\xfe\xc3(\n", 7);
  EXPECT_EQ(tagged({bytes}), "[d0]:" + bytes);
}

TEST(LineTagger, AnEmptyPrefixChangesNothing) {
  std::mt19937 random(1);
  const std::string text = random_text(random, 5000);
  EXPECT_EQ(tagged(cut_up(random, text, 50), ""), text);
}

TEST(LineTagger, PropertyTakingPrefixesOffGivesTheBytesBack) {
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    const std::string text = random_text(random, random() % 300);
    EXPECT_EQ(untagged(tagged({text})), text);
  }
}

TEST(LineTagger, PropertyChunksAndFlushesMakeNoDifference) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const std::string text = random_text(random, random() % 300);
    LineTagger tagger{std::string(kPrefix)};
    ByteQueue out;
    for (const auto& chunk : cut_up(random, text, 1 + random() % 40)) {
      const std::size_t before = out.size();
      const bool ready = tagger.ready(chunk);
      tagger.feed(chunk, out);
      EXPECT_EQ(ready, out.size() != before);
      if (random() % 3 == 0) tagger.flush(out);
    }
    tagger.flush(out);
    EXPECT_EQ(out.view(), tagged({text}));
  }
}

TEST(LineTagger, HoldsTheUnterminatedRest) {
  LineTagger tagger{std::string(kPrefix)};
  ByteQueue out;
  tagger.feed("whole\nrest", out);
  EXPECT_EQ(out.view(), "[d0]:whole\n");
  EXPECT_TRUE(tagger.holds());
  EXPECT_FALSE(tagger.mid_line());
  tagger.flush(out);
  EXPECT_EQ(out.view(), "[d0]:whole\n[d0]:rest");
  EXPECT_TRUE(tagger.mid_line());
  tagger.feed(" of it\n", out);
  EXPECT_EQ(out.view(), "[d0]:whole\n[d0]:rest of it\n");
}

TEST(LineTagger, ALineOfAnyLengthNeedsBoundedMemory) {
  LineTagger tagger{std::string(kPrefix)};
  const std::string chunk(10000, 'x');
  std::size_t fed = 0;
  std::size_t seen = 0;
  ByteQueue out;
  for (; fed < (64 << 20); fed += chunk.size()) {
    tagger.feed(chunk, out);
    seen += out.size();
    out.consume(out.size());
    ASSERT_LE(fed + chunk.size() + kPrefix.size() - seen, LineTagger::kHold + kPrefix.size());
    ASSERT_LE(out.capacity(), 4u << 20);
  }
  tagger.flush(out);
  EXPECT_EQ(seen + out.size(), fed + kPrefix.size());
}

TEST(LineTagger, HoldsNoLongRestAfterAWholeLine) {
  LineTagger tagger{std::string(kPrefix)};
  ByteQueue out;
  tagger.feed("a\n" + std::string(LineTagger::kHold + 1, 'x'), out);
  EXPECT_FALSE(tagger.holds());
  EXPECT_TRUE(tagger.mid_line());
}

// Shows what was fed so far, and lets another source write.
std::string interrupted(LineTagger& tagger, std::string_view bytes) {
  ByteQueue out;
  tagger.feed(bytes, out);
  tagger.flush(out);
  tagger.cut();
  return std::string(out.view());
}

std::string fed(LineTagger& tagger, std::string_view bytes) {
  ByteQueue out;
  tagger.feed(bytes, out);
  return std::string(out.view());
}

TEST(LineTagger, AnInterruptedLineIsShownAgainFromItsStart) {
  LineTagger tagger{std::string(kPrefix)};
  EXPECT_EQ(interrupted(tagger, "before\nha"), "[d0]:before\n[d0]:ha");
  EXPECT_FALSE(tagger.mid_line());
  EXPECT_EQ(interrupted(tagger, "lf"), "[d0]:half");
  EXPECT_EQ(fed(tagger, " and half\nnext\n"), "[d0]:half and half\n[d0]:next\n");
}

TEST(LineTagger, TheEndOfAnInterruptedLineIsNotDoubled) {
  LineTagger tagger{std::string(kPrefix)};
  (void)interrupted(tagger, "x");
  EXPECT_EQ(fed(tagger, "\nnext\n"), "[d0]:next\n");
  (void)interrupted(tagger, "y");
  EXPECT_EQ(fed(tagger, "\n"), "");
  EXPECT_EQ(fed(tagger, "z\n"), "[d0]:z\n");
}

// The next frame replaces the interrupted one.
TEST(LineTagger, AnInterruptedFrameOfABarIsNotShownAgain) {
  LineTagger tagger{std::string(kPrefix)};
  EXPECT_EQ(interrupted(tagger, "\r 10%"), "[d0]:\r[d0]: 10%");
  EXPECT_EQ(interrupted(tagger, "\r 20%"), "[d0]:\r[d0]: 20%");
  EXPECT_EQ(fed(tagger, " done\n"), "[d0]: 20% done\n");
}

TEST(LineTagger, ALineAfterAnInterruptedFrameIsShownAgain) {
  LineTagger tagger{std::string(kPrefix)};
  EXPECT_EQ(interrupted(tagger, "step 1\r"), "[d0]:step 1\r");
  EXPECT_EQ(interrupted(tagger, "step 2"), "[d0]:step 2");
  EXPECT_EQ(fed(tagger, " done\n"), "[d0]:step 2 done\n");
}

// As rich draws two rows.
TEST(LineTagger, TheLastOfSeveralRowsIsDrawn) {
  LineTagger tagger{std::string(kPrefix)};
  ByteQueue out;
  tagger.feed("\r\x1b[2K\x1b[1A\x1b[2Krow 1\nrow 2", out);
  EXPECT_TRUE(tagger.holds());
  EXPECT_FALSE(tagger.holds_cr());
  EXPECT_TRUE(tagger.redraws());
  tagger.feed(" more\nrest", out);
  EXPECT_TRUE(tagger.holds());
  EXPECT_FALSE(tagger.redraws());
}

TEST(LineTagger, WhatWasShownEarlyGoesOnAtOnce) {
  LineTagger tagger{std::string(kPrefix)};
  ByteQueue out;
  tagger.feed(".", out);
  tagger.flush(out);
  EXPECT_EQ(fed(tagger, "."), ".");
  EXPECT_EQ(fed(tagger, "\r 10%"), "");
  EXPECT_TRUE(tagger.holds_cr());
  tagger.flush(out);
  tagger.cut();
  EXPECT_FALSE(tagger.holds_cr());
  EXPECT_EQ(fed(tagger, "0\n"), "[d0]: 10%0\n");
}

TEST(LineTagger, ALineTooLongToHoldIsNotShownAgain) {
  LineTagger tagger{std::string(kPrefix)};
  (void)fed(tagger, std::string(LineTagger::kHold + 1, 'x'));
  tagger.cut();
  EXPECT_EQ(fed(tagger, "y\n"), "[d0]:y\n");
  (void)interrupted(tagger, std::string(LineTagger::kHold, 'x'));
  (void)interrupted(tagger, "x");
  EXPECT_EQ(fed(tagger, "y\n"), "[d0]:y\n");
}

// Whatever is cut where: the whole line stands on the console in one piece.
TEST(LineTagger, PropertyEveryLineIsShownWhole) {
  std::mt19937 random(4);
  for (int i = 0; i < 300; ++i) {
    const std::string line = std::to_string(random()) + std::to_string(random());
    LineTagger tagger{std::string(kPrefix)};
    ByteQueue out;
    for (const auto& chunk : cut_up(random, line + "\n", 1 + random() % 10)) {
      tagger.feed(chunk, out);
      if (random() % 3 == 0) tagger.flush(out);
      if (random() % 3 == 0 && tagger.mid_line()) {
        out.append("\nother\n");
        tagger.cut();
      }
    }
    EXPECT_NE(out.view().find("[d0]:" + line + "\n"), std::string_view::npos) << out.view();
  }
}

}  // namespace
}  // namespace lockstep::logs
