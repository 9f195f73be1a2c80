#include "logs/line_hold.h"

#include <gtest/gtest.h>

namespace lockstep::logs {
namespace {
using std::chrono::milliseconds;

constexpr LineHold::Time kStart{std::chrono::hours(1)};

TEST(LineHold, ALineWaitsForSecondsAndADrawnOneForMilliseconds) {
  LineHold hold;
  hold.begin(kStart);
  EXPECT_EQ(hold.due(false), kStart + milliseconds(2000));
  EXPECT_EQ(hold.due(true), kStart + milliseconds(20));
}

// Every cut shows the line again. A line that grows for hours must not fill the console.
TEST(LineHold, AnInterruptedLineWaitsLongerEachTimeUntilItEnds) {
  LineHold hold;
  hold.begin(kStart);
  hold.on_cut();
  EXPECT_EQ(hold.due(false), kStart + milliseconds(4000));
  hold.on_cut();
  EXPECT_EQ(hold.due(false), kStart + milliseconds(8000));
  for (int i = 0; i < 100; ++i)
    hold.on_cut();
  EXPECT_EQ(hold.due(false), kStart + milliseconds(60000));
  EXPECT_EQ(hold.due(true), kStart + milliseconds(20));
  hold.on_line_end();
  EXPECT_EQ(hold.due(false), kStart + milliseconds(2000));
}

}  // namespace
}  // namespace lockstep::logs
