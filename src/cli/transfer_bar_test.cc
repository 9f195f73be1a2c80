#include "cli/transfer_bar.h"

#include "base/log.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr std::uint64_t kMega = 1'000'000;

TEST(TransferBar, HasWhatRoomThereIs) {
  EXPECT_EQ(bar_text(5 * kMega, 10 * kMega, 80),
            "[###############...............] 5.0 MB of 10.0 MB");
  EXPECT_EQ(bar_text(10 * kMega, 10 * kMega, 80),
            "[##############################] 10.0 MB of 10.0 MB");
  EXPECT_EQ(bar_text(5 * kMega, 10 * kMega, 26), "[##...] 5.0 MB of 10.0 MB");
  EXPECT_EQ(bar_text(5 * kMega, 10 * kMega, 25), "[##..] 5.0 MB of 10.0 MB");
  EXPECT_EQ(bar_text(5 * kMega, 10 * kMega, 24), "5.0 MB of 10.0 MB");
  EXPECT_EQ(bar_text(5 * kMega, 0, 24), "5.0 MB");
  EXPECT_EQ(bar_text(5 * kMega, 10 * kMega, 20), "5.0 MB of 10.0 MB");
  EXPECT_EQ(bar_text(5 * kMega, 10 * kMega, 9), "5.0 MB o");
  EXPECT_EQ(bar_text(5 * kMega, 10 * kMega, 1), "");
}

TEST(TransferBar, IsWipedBeforeAMessageOfTheLog) {
  int wiped = 0;
  testing::internal::CaptureStderr();
  {
    const WipesForLog wipes([&wiped] {
      ++wiped;
      std::fputs("(wiped)", stderr);
    });
    log::warning("host x waits");
  }
  log::warning("later");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(wiped, 1);
  EXPECT_TRUE(said.starts_with("(wiped)W")) << said;
  EXPECT_NE(said.find("host x waits\nW"), std::string::npos) << said;
}

TEST(TransferBar, IsSentElsewhereWhereTheProcessHasNoTerminal) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sent;
  TransferBar::send_to(
      [&](std::uint64_t bytes, std::uint64_t of) { sent.emplace_back(bytes, of); });
  {
    TransferBar bar(true);
    bar.draw(kMega, 3 * kMega);
    bar.draw(2 * kMega, 3 * kMega);  // too soon
  }
  TransferBar::send_to({});
  EXPECT_EQ(sent,
            (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{kMega, 3 * kMega}, {0, 0}}));
}

TEST(TransferBar, NeverReachesTheLastColumn) {
  for (std::size_t columns = 1; columns < 100; ++columns)
    for (const std::uint64_t bytes : {std::uint64_t{0}, kMega, 999 * kMega, 2000 * kMega})
      EXPECT_LT(bar_text(bytes, 1000 * kMega, columns).size(), columns);
}

}  // namespace
}  // namespace lockstep::cli
