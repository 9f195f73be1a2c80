#include "logs/capture_plan.h"

#include "logs/log_file.h"

#include <gtest/gtest.h>

namespace lockstep::logs {
namespace {
const AttemptDir kDir{"/logs/attempt_0"};

CapturePlan plan(const CaptureRules& rules, const AttemptDir* dir = &kDir, int local_rank = 0,
                 int global_rank = 0) {
  return plan_capture(rules, dir, {}, local_rank, global_rank, "[d]:");
}

TEST(CapturePlan, NothingAskedFor) {
  const auto made = plan({});
  EXPECT_EQ(made.out.route, Route::inherit);
  EXPECT_EQ(made.err.route, Route::passthrough);
  EXPECT_EQ(made.prefix, "[d]:");
  CaptureRules rules;
  rules.keep_stderr_tail = false;
  EXPECT_EQ(plan(rules).err.route, Route::inherit);
}

TEST(CapturePlan, RedirectsAndTeeByRankAndStream) {
  CaptureRules rules;
  rules.redirects = StdSpec{Std::all, {}};
  rules.tee.by_rank = {{1, Std::err}};
  EXPECT_EQ(plan(rules).out.route, Route::file);
  EXPECT_EQ(plan(rules).err.path, "/logs/attempt_0/0/stderr.log");
  const auto made = plan(rules, &kDir, 1);
  EXPECT_EQ(made.out.route, Route::file);
  EXPECT_EQ(made.out.path, "/logs/attempt_0/1/stdout.log");
  EXPECT_EQ(made.err.route, Route::tee);
  EXPECT_EQ(made.err.path, "/logs/attempt_0/1/stderr.log");
}

TEST(CapturePlan, WhatIsShownUntaggedMayGetATag) {
  CaptureRules rules;
  rules.tag_all = true;
  rules.redirects.by_rank = {{1, Std::out}};
  rules.tee.by_rank = {{2, Std::out}};
  FilteredFiles files;
  files.out = std::move(*LogFile::open("/dev/null"));
  const auto made = [&](int rank) { return plan_capture(rules, &kDir, files, rank, 8 + rank, ""); };
  EXPECT_EQ(made(0).out.route, Route::tee);
  EXPECT_EQ(made(0).err.route, Route::tee);
  EXPECT_EQ(made(0).out.path + made(0).err.path, "");
  EXPECT_EQ(made(0).out.filtered, nullptr);
  EXPECT_EQ(made(0).source.rank, 8);
  EXPECT_EQ(made(1).out.route, Route::file);
  EXPECT_EQ(made(2).out.path, "/logs/attempt_0/2/stdout.log");
  EXPECT_EQ(made(2).out.filtered, files.out);
  rules.shown = CaptureRules::Shown{{1, 2}, {}};
  EXPECT_EQ(made(0).out.route, Route::discard);
  EXPECT_EQ(made(0).err.route, Route::keep);
}

TEST(CapturePlan, RanksFilteredOutKeepTheirFiles) {
  CaptureRules rules;
  rules.shown = CaptureRules::Shown{{0}, {9}};
  rules.tee = StdSpec{Std::out, {}};
  EXPECT_EQ(plan(rules, &kDir, 0, 4).out.route, Route::tee);
  EXPECT_EQ(plan(rules, &kDir, 1, 9).out.route, Route::tee);
  EXPECT_EQ(plan(rules, &kDir, 1, 5).out.route, Route::file);
  EXPECT_EQ(plan(rules, &kDir, 1, 5).err.route, Route::keep);
  EXPECT_EQ(plan(rules, nullptr, 1, 5).out.route, Route::discard);
  rules.keep_stderr_tail = false;
  EXPECT_EQ(plan(rules, &kDir, 1, 5).err.route, Route::discard);
}

TEST(CapturePlan, WithoutADirectoryThereAreNoFiles) {
  CaptureRules rules;
  rules.redirects = StdSpec{Std::out, {}};
  rules.tee = StdSpec{Std::err, {}};
  const auto made = plan(rules, nullptr);
  EXPECT_EQ(made.out.route, Route::inherit);
  EXPECT_EQ(made.err.route, Route::tee);
  EXPECT_EQ(made.err.path, "");
}

TEST(CapturePlan, DuplicateFiltersAreForTeedStreams) {
  CaptureRules rules;
  rules.tee = StdSpec{Std::out, {}};
  rules.duplicate_stdout_filters = {"a"};
  rules.duplicate_stderr_filters = {"b"};
  FilteredFiles files;
  files.out = std::move(*LogFile::open("/dev/null"));
  files.err = std::move(*LogFile::open("/dev/null"));
  const auto made = plan_capture(rules, &kDir, files, 0, 0, "");
  EXPECT_EQ(made.out.filters, rules.duplicate_stdout_filters);
  EXPECT_EQ(made.out.filtered, files.out);
  EXPECT_EQ(made.err.filtered, nullptr);
}

TEST(CapturePlan, LogsAreKeptWhereAnyOptionAsksForAFile) {
  CaptureRules rules;
  EXPECT_FALSE(rules.keeps_logs());
  rules.shown = CaptureRules::Shown{{0}, {}};
  EXPECT_FALSE(rules.keeps_logs());
  rules.redirects = StdSpec{Std::err, {}};
  EXPECT_TRUE(rules.keeps_logs());
  rules.redirects = {};
  rules.tee.by_rank = {{1, Std::err}};
  EXPECT_TRUE(rules.keeps_logs());
  rules.tee = {};
  rules.duplicate_stdout_filters = {"a"};
  EXPECT_TRUE(rules.keeps_logs());
  rules.duplicate_stdout_filters = {};
  rules.duplicate_stderr_filters = {"b"};
  EXPECT_TRUE(rules.keeps_logs());
}

}  // namespace
}  // namespace lockstep::logs
