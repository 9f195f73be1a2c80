#include "jobs/job_rows.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::jobs {
namespace {

using rows::RowState;

KnownJob sweep_job() {
  return {.id = "abcd",
          .name = "train",
          .place = "gpus",
          .command = "train.py",
          .plan = R"({"spec":{"run":["--sweep=lr=1,2","--sweep=seed=0-1","--","train.py",)"
                  R"("--sweep=no=1"],"env":[]}})"};
}

JobRow row(std::size_t number, RowState state, std::int64_t began_ms, const char* host,
           const char* last_line = "") {
  return {.record = {.row = number,
                     .state = state,
                     .began_ms = began_ms,
                     .ended_ms = state == RowState::running ? 0 : began_ms + 1500,
                     .code = state == RowState::failed ? 1 : 0,
                     .last_line = last_line},
          .host = host};
}

TEST(SweepOfJob, IsReadFromThePlan) {
  const auto sweep = sweep_of(sweep_job());
  ASSERT_TRUE(sweep && *sweep);
  EXPECT_EQ((*sweep)->rows, (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(rows::row_text((*sweep)->table, 3), "lr=2 seed=1");
}

TEST(SweepOfJob, IsReadFromTheVariable) {
  KnownJob job = sweep_job();
  job.plan = R"({"spec":{"run":["--sweep-only=1","--","x"],"env":["A=1",)"
             R"("LOCKSTEP_SWEEP_TABLE=lr\n1\n2\n"]}})";
  const auto sweep = sweep_of(job);
  ASSERT_TRUE(sweep && *sweep);
  EXPECT_EQ((*sweep)->rows, std::vector<std::size_t>{1});
}

TEST(SweepOfJob, OtherJobsHaveNone) {
  KnownJob job = sweep_job();
  for (const char* plan :
       {"", "slurm 12", R"({"spec":{"run":["--","x","--sweep=a=1"],"env":[]}})"}) {
    job.plan = plan;
    const auto sweep = sweep_of(job);
    ASSERT_TRUE(sweep) << plan;
    EXPECT_FALSE(*sweep) << plan;
  }
  job.plan = R"({"spec":{"run":["--sweep=1"],"env":[]}})";
  EXPECT_EQ(code_of(sweep_of(job)), Errc::corrupt);
}

// A row that was lost on one host and done on another is done. Else the last try counts.
TEST(MergedRows, TheBestRecordCounts) {
  const auto sweep = sweep_of(sweep_job());
  ASSERT_TRUE(sweep && *sweep);
  const auto merged =
      merge_rows(**sweep, {row(0, RowState::done, 100, "a"), row(0, RowState::running, 900, "b"),
                           row(1, RowState::failed, 100, "a"), row(1, RowState::running, 200, "b"),
                           row(2, RowState::failed, 300, "a"), row(2, RowState::failed, 200, "b"),
                           row(9999, RowState::done, 100, "a")});
  ASSERT_EQ(merged.size(), 3U);
  EXPECT_EQ(merged[0].record.state, RowState::done);
  EXPECT_EQ(merged[0].record.tries, 2);
  EXPECT_EQ(merged[1].host, "b");
  EXPECT_EQ(merged[2].host, "a");
  EXPECT_EQ(undone_rows(**sweep, merged), (std::vector<std::size_t>{1, 2, 3}));
}

TEST(RowWords, NameARowByNumberOrByValues) {
  const auto word = read_row_word("train[3]");
  ASSERT_TRUE(word);
  EXPECT_EQ(word->job, "train");
  EXPECT_EQ(word->row, "3");
  for (const char* text : {"train", "train[3", "[3]", "train3]"})
    EXPECT_FALSE(read_row_word(text)) << text;
  const auto sweep = sweep_of(sweep_job());
  EXPECT_EQ(find_row(**sweep, "3"), 3U);
  EXPECT_EQ(find_row(**sweep, "lr=2,seed=0"), 2U);
  for (const char* text : {"4", "0-1", "", "lr=2", "lr=3", "x=1", "lr=2,seed", "-1"})
    EXPECT_EQ(code_of(find_row(**sweep, text)), Errc::invalid_input) << text;
}

TEST(RowWords, ARowThatWasLeftOutHasNoOutput) {
  auto sweep = sweep_of(sweep_job()).value();
  sweep->rows = {0, 2};
  EXPECT_EQ(find_row(*sweep, "2"), 2U);
  EXPECT_EQ(find_row(*sweep, "1").error().message, "row 1 was not submitted");
  for (const char* text : {"", "-1", "lr", "0,2"})
    EXPECT_EQ(find_row(*sweep, text).error().hint, "name one, as 12 or lr=1e-3,seed=2") << text;
}

TEST(ExplainedRows, FailuresAreGroupedByTheirLastLine) {
  const auto sweep = sweep_of(sweep_job());
  const JobStatus status{.state = JobState::failed, .code = 1, .why = "1 done, 2 failed, 1 lost"};
  const auto said = explain_rows(
      sweep_job(), status, **sweep,
      {row(0, RowState::done, 0, "a"), row(1, RowState::failed, 0, "a", "ValueError: x"),
       row(2, RowState::running, 0, "b"), row(3, RowState::failed, 0, "b", "ValueError: x")});
  EXPECT_EQ(said.text,
            "abcd (train) on gpus: failed, 1 done, 2 failed, 1 lost\n"
            "  2 rows: ValueError: x\n"
            "       1  lr=1 seed=1  on a\n"
            "       3  lr=2 seed=1  on b\n"
            "  1 row: lost: the host recorded no end\n"
            "       2  lr=2 seed=0  on b\n"
            "`lockstep resume abcd` runs the rows again that are not done; "
            "`lockstep logs 'abcd[1]'` shows the output of one\n");
  EXPECT_EQ(said.json["command"], sweep_job().command);
  EXPECT_EQ(said.json["nodes"].size(), sweep_job().nodes.size());
  ASSERT_EQ(said.json["rows"].size(), 4U);
  EXPECT_EQ(said.json["rows"][1]["values"]["lr"], "1");
  EXPECT_EQ(said.json["rows"][1]["seconds"], 1.5);
  EXPECT_EQ(said.json["rows"][2]["state"], "lost");
}

TEST(ExplainedRows, ASilentHostMayHaveDoneTheRest) {
  const auto sweep = sweep_of(sweep_job());
  JobStatus status{.state = JobState::running, .why = "1 done, 3 unknown"};
  status.nodes = {{.name = "a", .state = JobState::running}, {.name = "b"}};
  const std::vector<JobRow> known = {row(0, RowState::done, 0, "a")};
  const auto state = [&] {
    return explain_rows(sweep_job(), status, **sweep, known).json["rows"][1]["state"];
  };
  EXPECT_EQ(state(), "unknown");
  status.nodes[1].state = JobState::running;
  EXPECT_EQ(state(), "queued");
}

}  // namespace
}  // namespace lockstep::jobs
