#include "agent/past_runs.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace lockstep::agent {
namespace {

PastRun run_of(const std::string& key, std::int64_t duration_ms = 60'000) {
  return {.key = key, .outcome = "succeeded", .ended_ms = 1000, .duration_ms = duration_ms};
}

TEST(PastRuns, ARunTakesThePlaceOfTheLastRunOfItsCommand) {
  std::vector<PastRun> runs;
  EXPECT_FALSE(replace_past_run(runs, run_of("a", 1)));
  EXPECT_FALSE(replace_past_run(runs, run_of("b", 2)));
  EXPECT_EQ(replace_past_run(runs, run_of("a", 3))->duration_ms, 1);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs.back().duration_ms, 3);
}

TEST(PastRuns, TheFirstRunToEndIsForgottenFirst) {
  std::vector<PastRun> runs;
  for (std::size_t i = 0; i < kMostPastRuns; ++i)
    replace_past_run(runs, run_of(fmt::format("{}", i)));
  EXPECT_TRUE(replace_past_run(runs, run_of("0")));
  EXPECT_FALSE(replace_past_run(runs, run_of("new")));
  EXPECT_EQ(runs.size(), kMostPastRuns);
  EXPECT_TRUE(replace_past_run(runs, run_of("0")));
  EXPECT_FALSE(replace_past_run(runs, run_of("1")));
}

TEST(PastRuns, AreReadAsTheyWereWritten) {
  std::vector<PastRun> runs;
  const std::string key(64, 'f');
  for (std::size_t i = 0; i < kMostPastRuns; ++i)
    replace_past_run(runs, run_of(fmt::format("{}{}", key.substr(2), i + 10)));
  replace_past_run(runs, {.key = key,
                          .outcome = "interrupted",
                          .ended_ms = 1'700'000'000'000,
                          .duration_ms = 7'800'000,
                          .restarts = 2,
                          .goodput = 88});
  const auto read = read_past_runs(print_past_runs(runs));
  ASSERT_EQ(read.size(), kMostPastRuns);
  EXPECT_EQ(read.back().key, key);
  EXPECT_EQ(read.back().outcome, "interrupted");
  EXPECT_EQ(read.back().ended_ms, 1'700'000'000'000);
  EXPECT_EQ(read.back().duration_ms, 7'800'000);
  EXPECT_EQ(read.back().restarts, 2);
  EXPECT_EQ(read.back().goodput, 88);
  EXPECT_EQ(read.front().goodput, -1);
}

TEST(PastRuns, ADamagedFileHoldsNone) {
  for (const char* text : {"", "\0\1", "null", "[]", "{}", "{\"runs\":7}", "{\"runs\":[7,null]}",
                           "{\"runs\":[{\"key\":\"a\"}", "{\"runs\":{\"key\":\"a\"}}"})
    EXPECT_TRUE(read_past_runs(text).empty()) << text;
  std::string many = "{\"runs\":[";
  for (std::size_t i = 0; i < kMostPastRuns; ++i)
    many += "{},";
  EXPECT_EQ(read_past_runs(many.substr(0, many.size() - 1) + "]}").size(), kMostPastRuns);
  EXPECT_TRUE(read_past_runs(many + "{}]}").empty());
  EXPECT_TRUE(read_past_runs("{\"runs\":[]," + std::string(70'000, ' ') + "\"a\":1}").empty());
}

TEST(PastRuns, ForeignValuesAreBounded) {
  const auto runs = read_past_runs(
      "{\"runs\":[{\"key\":\"a\",\"outcome\":\"\\u001b[31m\",\"ended_ms\":-9000000000000000000,"
      "\"duration_ms\":9000000000000000000,\"restarts\":9000000000000000000,\"goodput\":-7}]}");
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].outcome.find('\x1b'), std::string::npos);
  EXPECT_EQ(runs[0].ended_ms, 0);
  EXPECT_EQ(runs[0].restarts, 1'000'000);
  EXPECT_EQ(runs[0].goodput, -1);
  EXPECT_LT(past_run_words(runs[0], 0).size(), 100U);
}

TEST(PastRuns, InWords) {
  PastRun run = run_of("a", 7'800'000);
  EXPECT_EQ(past_run_words(run, 12'001'000), "3 h 20 min ago: 2 h 10 min");
  run.goodput = 88;
  EXPECT_EQ(past_run_words(run, 0), "0 s ago: 2 h 10 min, goodput 88 %") << "the clock went back";
  run.restarts = 1;
  run.outcome = "failed";
  EXPECT_EQ(past_run_words(run, 6000),
            "5 s ago: failed after 2 h 10 min, with 1 restart, goodput 88 %");
  run.restarts = 2;
  run.goodput = 0;
  run.outcome = "interrupted";
  EXPECT_EQ(past_run_words(run, 6000),
            "5 s ago: interrupted after 2 h 10 min, with 2 restarts, goodput 0 %");
}

}  // namespace
}  // namespace lockstep::agent
