#include "top/screen.h"

#include "top/text_width.h"
#include "top/top_testing.h"

#include <gtest/gtest.h>

namespace lockstep::top {
namespace {

using Kind = Key::Kind;

class ScreenTest : public ::testing::Test {
 protected:
  // A job whose ranks are all in different lines.
  static JobRows long_job(int ranks) {
    std::vector<looks::RankRow> rows;
    rows.reserve(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank)
      rows.push_back(row_at(rank, "training", "step, train.py:" + std::to_string(100 + rank)));
    return job_of(std::move(rows));
  }
  Screen::Wish type(const std::string& text) {
    Screen::Wish wish = Screen::Wish::none;
    for (const char c : text)
      wish = screen.press({Kind::text, std::string(1, c)});
    return wish;
  }
  std::string text(const ScreenSize& size = {}) {
    std::string all;
    for (const ScreenLine& line : screen.draw(size))
      all += line.text + "\n";
    return all;
  }
  std::string chosen(const ScreenSize& size = {}) {
    for (const ScreenLine& line : screen.draw(size))
      if (line.style == Style::chosen) return line.text;
    return {};
  }
  bool shows(const std::string& part) { return text().find(part) != std::string::npos; }

  Screen screen{Sort::rank, std::nullopt};
};

TEST_F(ScreenTest, HasExactlyTheSizeOfTheTerminal) {
  for (int ranks : {0, 2, 100}) {
    screen.take(ranks == 0 ? job_of({}) : long_job(ranks));
    for (std::size_t rows = 1; rows < 60; ++rows)
      for (std::size_t columns : {1, 7, 40, 80, 200}) {
        const auto lines = screen.draw({rows, columns});
        ASSERT_EQ(lines.size(), rows);
        for (const ScreenLine& line : lines)
          ASSERT_LE(columns_of(line.text), columns);
      }
  }
  EXPECT_TRUE(screen.draw({0, 0}).empty());
}

TEST_F(ScreenTest, ClaimsNothingBeforeTheFirstAnswer) {
  EXPECT_TRUE(shows("lockstep top"));
  EXPECT_FALSE(shows("no rank runs"));
}

TEST_F(ScreenTest, ShowsTheVerdictAndTheRanks) {
  screen.take(waiting_job(8));
  const std::string all = text();
  EXPECT_NE(all.find("job pid-7 on this machine: train.py, attempt 1, 8 of 8 ranks\n"
                     "hung: no rank has run for 31 s\n"),
            std::string::npos)
      << all;
  EXPECT_NE(all.find("0,2-7"), std::string::npos);
  EXPECT_NE(all.find("q quit"), std::string::npos);
  JobRows slow = waiting_job(8);
  slow.nodes[0].straggler = "rank 1 (node n1) makes the others wait";
  screen.take(slow);
  EXPECT_TRUE(shows("straggler: rank 1 (node n1) makes"));
}

TEST_F(ScreenTest, TheChosenLineStaysInSight) {
  screen.take(long_job(100));
  const ScreenSize small{10, 40};
  EXPECT_NE(chosen(small).find("train.py:100"), std::string::npos);
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(screen.press({Kind::down}), Screen::Wish::draw);
  EXPECT_NE(chosen(small).find("train.py:150"), std::string::npos) << text(small);
  type("kkk");
  EXPECT_NE(chosen(small).find("train.py:147"), std::string::npos) << text(small);
  screen.press({Kind::end});
  EXPECT_NE(chosen(small).find("train.py:199"), std::string::npos) << text(small);
  screen.press({Kind::page_up});
  EXPECT_EQ(chosen(small).find("train.py:199"), std::string::npos);
  screen.press({Kind::home});
  EXPECT_NE(chosen(small).find("train.py:100"), std::string::npos);
  // The choice follows the rank when lines change.
  screen.press({Kind::down});
  screen.take(waiting_job(8));
  EXPECT_NE(chosen(small).find("hung"), std::string::npos) << text(small);
}

TEST_F(ScreenTest, EnterShowsOneRankInFull) {
  screen.take(waiting_job(8));
  screen.press({Kind::down});
  EXPECT_EQ(screen.press({Kind::enter}), Screen::Wish::ask);
  EXPECT_EQ(screen.shown_rank(), 1);
  EXPECT_TRUE(shows("rank 1 on n1, pid 1001: hung"));
  screen.take_threads(1, "rank 1\n  main thread\n    data.py:41 in \x1b[2Jcollate\n");
  EXPECT_TRUE(shows("data.py:41 in \\x1b[2Jcollate"));
  screen.take_threads(5, "of another rank");
  EXPECT_FALSE(shows("of another rank"));
  EXPECT_EQ(screen.press({Kind::escape}), Screen::Wish::draw);
  EXPECT_FALSE(screen.shown_rank());
  EXPECT_FALSE(shows("main thread"));
  EXPECT_NE(chosen().find("hung"), std::string::npos);
}

TEST_F(ScreenTest, ALongPageScrolls) {
  screen.take(waiting_job(2));
  screen.press({Kind::enter});
  std::string threads;
  for (int i = 0; i < 100; ++i)
    threads += "frame " + std::to_string(i) + "\n";
  screen.take_threads(0, threads);
  EXPECT_FALSE(shows("frame 99"));
  screen.press({Kind::end});
  EXPECT_TRUE(shows("frame 99"));
  screen.press({Kind::up});
  EXPECT_FALSE(shows("frame 99"));
  screen.press({Kind::home});
  EXPECT_TRUE(shows("frame 0\n"));
}

TEST_F(ScreenTest, SortsFiltersAndUnfolds) {
  screen.take(waiting_job(8));
  EXPECT_TRUE(shows("sorted by rank"));
  type("ss");
  EXPECT_TRUE(shows("sorted by state"));
  EXPECT_NE(chosen().find("waiting"), std::string::npos) << "the choice stays with its rank";
  type("f");
  EXPECT_FALSE(shows("0,2-7"));
  type("f/data");
  EXPECT_TRUE(shows("filter: data_"));
  EXPECT_FALSE(shows("all_reduce"));
  EXPECT_TRUE(shows("collate"));
  screen.press({Kind::backspace});
  EXPECT_TRUE(shows("filter: dat_"));
  screen.press({Kind::enter});
  EXPECT_TRUE(shows("only 'dat'"));
  type("/nothing");
  EXPECT_TRUE(shows("no rank is like that"));
  screen.press({Kind::escape});
  EXPECT_TRUE(shows("all_reduce"));
}

// A letter in a filter is no command.
TEST_F(ScreenTest, QuitsByQAlone) {
  screen.take(waiting_job(2));
  EXPECT_EQ(type("x"), Screen::Wish::none);
  EXPECT_EQ(type("/q"), Screen::Wish::draw);
  screen.press({Kind::escape});
  EXPECT_EQ(type("q"), Screen::Wish::quit);
  screen.press({Kind::enter});
  EXPECT_EQ(type("q"), Screen::Wish::quit);
}

TEST_F(ScreenTest, ANoteStandsInPlaceOfTheKeys) {
  EXPECT_TRUE(shows("asks the job"));
  screen.take(waiting_job(2));
  screen.note("n2: no route to host");
  EXPECT_TRUE(shows("n2: no route to host"));
  screen.take(waiting_job(2));
  EXPECT_FALSE(shows("no route"));
}

TEST_F(ScreenTest, OnceShowsAllLinesAndNoKeys) {
  screen.take(long_job(100));
  const auto lines = screen.draw_once(40);
  EXPECT_EQ(lines.size(), 103U);
  for (const ScreenLine& line : lines) {
    EXPECT_LE(columns_of(line.text), 40U);
    EXPECT_EQ(line.text.find("quit"), std::string::npos);
    EXPECT_NE(line.style, Style::chosen);
  }
}

}  // namespace
}  // namespace lockstep::top
