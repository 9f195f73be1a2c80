#include "logs/line_folder.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace lockstep::logs {
namespace {

using std::chrono::milliseconds;

class LineFolderTest : public ::testing::Test {
 protected:
  LineFolder folder(LineFolder::Limits limits = {}) {
    return LineFolder(limits, [this](std::span<const int> ranks, std::string_view line, auto) {
      shown_.push_back(ranks_text(ranks) + " " + std::string(line));
    });
  }
  static LineFolder::Time at(int ms) { return LineFolder::Time(milliseconds(ms)); }
  std::vector<std::string> taken() { return std::exchange(shown_, {}); }
  using Lines = std::vector<std::string>;

  Lines shown_;
};

TEST_F(LineFolderTest, EqualLinesBecomeOne) {
  LineFolder lines = folder();
  for (int rank : {2, 0, 3, 1})
    lines.put(rank, "loss 2.31", at(rank));
  EXPECT_EQ(taken(), Lines());
  lines.flush_due(at(101));
  EXPECT_EQ(taken(), Lines());
  lines.flush_due(at(102));  // rank 2 printed it first
  EXPECT_EQ(taken(), Lines({"0-3 loss 2.31"}));
  EXPECT_FALSE(lines.due());
}

TEST_F(LineFolderTest, WhatAllHaveSaidDoesNotWait) {
  LineFolder lines = folder();
  lines.set_sources(2);
  lines.put(0, "a", at(0));
  lines.put(0, "b", at(0));
  lines.put(1, "a", at(0));
  EXPECT_EQ(taken(), Lines({"0-1 a"}));
  lines.put(1, "b", at(0));
  EXPECT_EQ(taken(), Lines({"0-1 b"}));
}

// tqdm's frames, of ranks with slightly different speeds.
TEST_F(LineFolderTest, ABarOfSeveralRanksIsALineASecond) {
  LineFolder lines = folder();
  const auto frame = [](int done) {
    return "\rEpoch 1:  " + std::to_string(done) + "%|\xe2\x96\x88  | " + std::to_string(done) +
           "/100 [00:0" + std::to_string(done / 10) + "<00:09, 9.98it/s]";
  };
  EXPECT_FALSE(lines.draw(0, frame(0), at(0)));  // only rank 0 draws the bar so far
  EXPECT_TRUE(lines.draw(1, frame(0), at(1)));
  for (int step = 1; step <= 20; ++step)
    for (int rank : {1, 0, 2})
      EXPECT_TRUE(lines.draw(rank, frame(step + rank), at(step * 100 + rank))) << step << rank;
  lines.flush_due(at(2500));
  EXPECT_EQ(taken(), Lines({"0-2 Epoch 1:  20%|\xe2\x96\x88  | 20/100 [00:02<00:09, 9.98it/s]\n"}));
  EXPECT_FALSE(lines.due());
  for (int rank : {0, 1, 2})
    EXPECT_TRUE(lines.draw(rank, frame(99) + "\n", at(2600 + rank)));
  lines.flush_due(at(2800));
  EXPECT_EQ(taken(), Lines());
  EXPECT_EQ(lines.due(), at(3500));
  lines.put(1, "saved\n", at(2900));  // the next line of a rank comes after its bar
  ASSERT_EQ(taken().size(), 1U);
  lines.flush();
  EXPECT_EQ(taken(), Lines({"1 saved\n"}));
}

TEST_F(LineFolderTest, OtherBarsAndLinesStayApart) {
  LineFolder lines = folder();
  EXPECT_FALSE(lines.draw(0, "\rtrain:  1%|", at(0)));
  EXPECT_FALSE(lines.draw(1, "\rload:  1%|", at(0)));
  EXPECT_FALSE(lines.draw(0, "\rtrain:  2%|", at(10)));
  EXPECT_TRUE(lines.draw(1, "\rtrain:  2%|", at(1000)));
  EXPECT_FALSE(lines.draw(1, "\rtrain:  3%|", at(9000)));  // rank 0 has not drawn for long
  lines.flush();
  EXPECT_EQ(taken(), Lines({"1 train:  2%|\n"}));
  // tqdm.write() wipes the bar and prints a line.
  EXPECT_TRUE(lines.draw(1, "\r            \rsaved at 3\n", at(9100)));
  EXPECT_TRUE(lines.draw(0, "\r            \rsaved at 4\n", at(9100)));
  lines.flush();
  EXPECT_EQ(taken(), Lines({"1 saved at 3\n", "0 saved at 4\n"}));
  // The end of a bar may arrive alone.
  EXPECT_FALSE(lines.draw(0, "\rx: 1%", at(9200)));
  EXPECT_TRUE(lines.draw(1, "\rx: 1%", at(9200)));
  lines.put(1, "\n", at(9300));
  lines.put(0, "\n", at(9300));
  lines.flush();
  EXPECT_EQ(taken(), Lines({"0 \n", "1 x: 1%\n"}));
}

TEST_F(LineFolderTest, OneRankNeverWaits) {
  LineFolder lines = folder();
  lines.set_sources(1);
  lines.put(5, "a", at(0));
  lines.put(5, "a", at(0));
  EXPECT_EQ(taken(), Lines({"5 a", "5 a"}));
}

TEST_F(LineFolderTest, WhoeverIsLeftNeverWaits) {
  LineFolder lines = folder();
  lines.set_sources(2);
  lines.put(0, "a", at(0));
  lines.set_sources(1);
  EXPECT_EQ(taken(), Lines({"0 a"}));
}

// Rank 1 prints "b" first: it may not join the "a" before rank 0's "b".
TEST_F(LineFolderTest, TheOrderOfARankStays) {
  LineFolder lines = folder();
  lines.put(0, "a", at(0));
  lines.put(0, "b", at(0));
  lines.put(1, "b", at(1));
  lines.put(1, "a", at(1));
  lines.flush();
  EXPECT_EQ(taken(), Lines({"0 a", "0-1 b", "1 a"}));
}

TEST_F(LineFolderTest, ARankThatRepeatsItselfIsShownAsOften) {
  LineFolder lines = folder();
  for (int rank : {0, 0, 0, 1, 1})
    lines.put(rank, "x", at(0));
  lines.flush();
  EXPECT_EQ(taken(), Lines({"0-1 x", "0-1 x", "0 x"}));
}

TEST_F(LineFolderTest, WhatFollowsComesBehind) {
  LineFolder lines = folder();
  lines.put(0, "a", at(0));
  lines.put(1, "b", at(0));
  lines.put(2, "c", at(0));
  lines.flush_of(1);
  EXPECT_EQ(taken(), Lines({"0 a", "1 b"}));
  lines.flush_of(1);
  lines.flush_of(7);
  EXPECT_EQ(taken(), Lines());
}

TEST_F(LineFolderTest, WhatWaitsIsBounded) {
  LineFolder lines = folder({.lines = 3, .bytes = 100});
  for (const char* text : {"a", "b", "c", "d"})
    lines.put(0, text, at(0));
  EXPECT_EQ(taken(), Lines({"0 a"}));
  lines.put(0, std::string(100, 'x'), at(0));
  EXPECT_EQ(taken(), Lines({"0 b", "0 c", "0 d"}));
}

TEST_F(LineFolderTest, ALineWaitsForTheWindowAtMost) {
  LineFolder lines = folder();
  lines.put(0, "a", at(7));
  EXPECT_EQ(lines.due(), at(107));
  lines.put(1, "a", at(50));
  EXPECT_EQ(lines.due(), at(107));
}

TEST(RanksText, HasRanges) {
  const auto text = [](std::vector<int> ranks) { return ranks_text(ranks); };
  EXPECT_EQ(text({0}), "0");
  EXPECT_EQ(text({0, 1}), "0-1");
  EXPECT_EQ(text({0, 2, 3, 4, 9}), "0,2-4,9");
  std::vector<int> odd;
  for (int rank = 1; rank < 1000; rank += 2)
    odd.push_back(rank);
  EXPECT_TRUE(text(odd).ends_with(",127,..."));
}

// For any lines of any ranks in any order: each rank's lines appear in order.
TEST(LineFolderProperty, NothingIsLostOrMoved) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::map<int, std::vector<std::string>> said;
    std::map<int, std::vector<std::string>> shown;
    std::size_t lines_shown = 0;
    LineFolder lines({.window = milliseconds(10), .lines = 1 + random() % 20, .bytes = 200},
                     [&](std::span<const int> ranks, std::string_view line, auto) {
                       ++lines_shown;
                       ASSERT_FALSE(ranks.empty());
                       for (const int rank : ranks)
                         shown[rank].emplace_back(line);
                     });
    const int ranks = 1 + static_cast<int>(random() % 8);
    if (random() % 2 == 0) lines.set_sources(static_cast<std::size_t>(ranks));
    LineFolder::Time now{};
    for (int i = 0; i < 200; ++i) {
      now += milliseconds(random() % 3);
      const int rank = static_cast<int>(random()) & 0x7;
      const std::string text(1 + random() % 3, static_cast<char>('a' + random() % 3));
      if (random() % 20 == 0) {
        lines.flush_of(rank % ranks);
        ASSERT_EQ(shown[rank % ranks], said[rank % ranks]);
      }
      said[rank % ranks].push_back(text);
      lines.put(rank % ranks, text, now);
      lines.flush_due(now);
      ASSERT_TRUE(!lines.due() || *lines.due() > now);
    }
    lines.flush();
    ASSERT_EQ(shown, said) << round;
    ASSERT_TRUE(ranks > 1 || lines_shown == said[0].size());
  }
}

}  // namespace
}  // namespace lockstep::logs
