#include "agent/file_timer.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace lockstep::agent {
namespace {

std::string request(int pid, const char* scope, double expiration, int signal) {
  return fmt::format(
      R"({{"version": 1, "pid": {}, "scope_id": "{}", "expiration_time": {}, "signal": {}}})"
      "\n",
      pid, scope, expiration, signal);
}

TEST(FileTimer, ExpiredProcessIsReportedOnce) {
  FileTimerTable table;
  table.feed(request(70, "a", 100.5, 9));
  EXPECT_TRUE(table.take_expired(100.4).empty());
  const auto due = table.take_expired(100.5);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].pid, 70);
  EXPECT_EQ(due[0].signal, 9);
  EXPECT_EQ(due[0].scope_id, "a");
  EXPECT_TRUE(table.take_expired(200).empty());
  EXPECT_TRUE(table.pids().empty());
}

TEST(FileTimer, PiecesOfAnySizeMakeTheSameLines) {
  FileTimerTable table;
  for (const char c : request(70, "a", 1, 9) + request(71, "a", 1, 15))
    table.feed({&c, 1});
  EXPECT_EQ(table.take_expired(2).size(), 2U);
}

TEST(FileTimer, NegativeExpirationReleases) {
  FileTimerTable table;
  table.feed(request(70, "a", 1, 9) + request(70, "b", 50, 9) + request(70, "a", -1, 0));
  EXPECT_TRUE(table.take_expired(2).empty());
  EXPECT_EQ(table.pids(), std::vector<pid_t>{70});
}

TEST(FileTimer, LaterRequestReplaces) {
  FileTimerTable table;
  table.feed(request(70, "a", 1, 9) + request(70, "a", 50, 9));
  EXPECT_TRUE(table.take_expired(2).empty());
}

TEST(FileTimer, EarliestWithASignalCounts) {
  FileTimerTable table;
  table.feed(request(70, "a", 1, 0) + request(70, "b", 3, 15) + request(70, "c", 2, 9) +
             request(71, "a", 1, 0) + request(72, "a", 99, 9));
  const auto due = table.take_expired(10);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].scope_id, "c");
  EXPECT_EQ(table.pids(), std::vector<pid_t>{72});
}

TEST(FileTimer, GarbageIsIgnoredWithOneWarning) {
  FileTimerTable table;
  EXPECT_EQ(table.take_warning(), std::nullopt);
  table.feed("\nnonsense\x01\n{}\n[1]\n" + request(1, "init", 1, 9) + request(-5, "group", 1, 9) +
             request(70, "a", 1, 65));
  const auto warning = table.take_warning();
  ASSERT_TRUE(warning);
  EXPECT_NE(warning->find("nonsense\\x01"), std::string::npos);
  EXPECT_EQ(table.take_warning(), std::nullopt);
  EXPECT_TRUE(table.take_expired(10).empty());
}

TEST(FileTimer, OverlongLineIsSkippedWhole) {
  FileTimerTable table;
  const std::string blanks(FileTimerTable::kLineLimit, ' ');
  for (int i = 0; i < 100; ++i)
    table.feed(blanks);
  table.feed(request(70, "a", 1, 9) + request(71, "a", 1, 9));
  const auto due = table.take_expired(10);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].pid, 71);
  EXPECT_TRUE(table.take_warning());
}

TEST(FileTimer, NumberOfTimersIsBounded) {
  FileTimerTable table;
  for (std::size_t i = 0; i < FileTimerTable::kTimerLimit + 10; ++i)
    table.feed(request(static_cast<int>(i) + 2, "a", 1, 9));
  EXPECT_EQ(table.pids().size(), FileTimerTable::kTimerLimit);
  table.forget(2);
  EXPECT_EQ(table.pids().front(), 3);
}

}  // namespace
}  // namespace lockstep::agent
