#include "jobs/job_status.h"

#include <gtest/gtest.h>

namespace lockstep::jobs {
namespace {

using job::Stage;
using Record = std::optional<job::JobRecord>;

Record node(Stage stage, int code = 0) {
  job::JobRecord record;
  record.state.stage = stage;
  record.state.code = code;
  return record;
}

Record canceled(int code, const std::string& problem) {
  Record record = node(Stage::ended, code);
  record->state.canceled = true;
  record->state.problem = problem;
  return record;
}

JobStatus status_of(const std::vector<Record>& nodes) {
  return jobs::status_of(std::vector<std::string>(nodes.size(), "h"), nodes);
}

TEST(JobStatus, OnlyAJobThatHasEndedHasACode) {
  EXPECT_EQ(status_of({node(Stage::ended, 0)}).code, 0);
  EXPECT_EQ(status_of({node(Stage::ended, 0), node(Stage::ended, 7)}).code, 7);
  EXPECT_EQ(status_of({node(Stage::ended, 0), node(Stage::ended, 7)}).state, JobState::failed);
  const std::vector<std::pair<Stage, JobState>> states = {{Stage::prepared, JobState::starting},
                                                          {Stage::queued, JobState::queued},
                                                          {Stage::running, JobState::running}};
  for (const auto& [stage, state] : states) {
    const JobStatus status = status_of({node(Stage::ended, 0), node(stage)});
    EXPECT_EQ(status.code, std::nullopt) << state_name(state);
    EXPECT_EQ(status.state, state);
  }
  EXPECT_EQ(status_of({std::nullopt}).code, std::nullopt);
  EXPECT_EQ(status_of({node(Stage::lost)}).code, std::nullopt);
}

TEST(JobStatus, IsOfAllNodesThatAnswer) {
  const auto status = status_of({node(Stage::ended, 0), node(Stage::ended, 3), std::nullopt});
  EXPECT_EQ(status.state, JobState::failed);
  EXPECT_EQ(status.code, 3);
  ASSERT_EQ(status.nodes.size(), 3U);
  EXPECT_EQ(status.nodes[0].state, JobState::succeeded);
  EXPECT_EQ(status.nodes[1].code, 3);
  EXPECT_EQ(status.nodes[2].state, std::nullopt);
  EXPECT_EQ(status_of({node(Stage::lost, 0), node(Stage::ended, 0)}).state, JobState::succeeded)
      << "a node was replaced, the job went well";
  EXPECT_EQ(status_of({node(Stage::lost, 0), std::nullopt}).state, JobState::lost);
}

Record rows_of(Stage stage, int code, const rows::RowSets& sets) {
  Record record = node(stage, code);
  record->spec.rows = 8;
  record->row_sets = sets;
  return record;
}

TEST(JobStatus, TheRowsOfASweepAreCountedOverItsHosts) {
  const auto running =
      rows_of(Stage::running, 0, {.done = {0, 1}, .running = {2, 3}, .failed = {4}});
  EXPECT_EQ(status_of({running, rows_of(Stage::ended, 0, {.done = {5}})}).why,
            "3 done, 2 running, 1 failed, 2 queued");
  // Nothing runs on a lost host, so rows without an end there are lost.
  const auto lost = rows_of(Stage::lost, 0, {.done = {5}, .running = {6}});
  EXPECT_EQ(status_of({running, lost}).why, "3 done, 2 running, 1 failed, 1 lost, 1 queued");
  EXPECT_EQ(status_of({rows_of(Stage::ended, 1, {.failed = {4}}), lost}).why,
            "1 done, 1 failed, 1 lost, 5 not begun");
  // A silent host may have done the others.
  EXPECT_EQ(status_of({rows_of(Stage::ended, 0, {.done = {1}}), std::nullopt}).why,
            "1 done, 7 unknown");
  // A row that begins again on another host counts once.
  EXPECT_EQ(status_of({rows_of(Stage::running, 0, {.failed = {1, 2}, .lost = {3}}),
                       rows_of(Stage::running, 0, {.done = {1}, .running = {2, 3}})})
                .why,
            "1 done, 2 running, 5 queued");
}

TEST(JobStatus, TheRowsDecideHowASweepHasEnded) {
  const rows::RowSets all = {.done = {0, 1, 2, 3, 4, 5, 6, 7}};
  // The part lost its way to the queue, and others did all rows.
  const auto done = status_of({rows_of(Stage::ended, 0, all), rows_of(Stage::ended, 1, {})});
  EXPECT_EQ(done.state, JobState::succeeded);
  EXPECT_EQ(done.code, 0);
  const auto less = status_of(
      {rows_of(Stage::lost, 0, {.running = {1}}), rows_of(Stage::ended, 0, {.done = {0}})});
  EXPECT_EQ(less.state, JobState::failed);
  EXPECT_EQ(less.code, 1);
}

TEST(JobStatus, ASweepHasEndedOnceEachRowHasAnExitCode) {
  const rows::RowSets most = {.done = {0, 1, 2, 3}, .failed = {4, 5, 6}};
  const auto last = rows_of(Stage::ended, 1, {.failed = {7}});
  EXPECT_TRUE(status_of({rows_of(Stage::ended, 1, most), last}).rows_ended);
  EXPECT_FALSE(status_of({rows_of(Stage::ended, 1, most), std::nullopt}).rows_ended);
  EXPECT_FALSE(
      status_of({rows_of(Stage::ended, 1, most), rows_of(Stage::lost, 0, {.running = {7}})})
          .rows_ended);
  // The notice has stopped rows, which then count as failed.
  Record noticed = last;
  noticed->state.canceled = true;
  noticed->state.code = 143;
  noticed->state.problem = "its machine is taken away";
  EXPECT_FALSE(status_of({rows_of(Stage::ended, 1, most), noticed}).rows_ended);
  noticed->state.code = 1;
  EXPECT_TRUE(status_of({rows_of(Stage::ended, 1, most), noticed}).rows_ended)
      << "its rows had ended before";
  EXPECT_FALSE(status_of({node(Stage::ended, 0)}).rows_ended) << "no sweep";
}

TEST(JobStatus, APersonCancelsAndANoticeDoesNot) {
  EXPECT_EQ(status_of({canceled(143, "")}).state, JobState::canceled);
  EXPECT_EQ(status_of({canceled(0, "")}).state, JobState::canceled);
  const JobStatus taken = status_of({canceled(143, "its machine is taken away")});
  EXPECT_EQ(taken.state, JobState::failed);
  EXPECT_TRUE(taken.canceled);
  EXPECT_FALSE(taken.by_person);
  EXPECT_EQ(taken.why, "its machine is taken away");
}

TEST(JobStatus, EveryStateHasAWordOfItsOwn) {
  for (int number = 0; number <= static_cast<int>(JobState::lost); ++number) {
    const auto state = static_cast<JobState>(number);
    EXPECT_EQ(state_of(state_name(state)), state);
    EXPECT_EQ(is_over(state), number >= static_cast<int>(JobState::succeeded));
  }
  EXPECT_EQ(state_of("ended"), std::nullopt);
}

TEST(JobStatus, AHostsAnswerIsOneRecordOrNone) {
  EXPECT_FALSE(parse_status(""));
  EXPECT_FALSE(parse_status("{}"));
  EXPECT_FALSE(parse_status("[{}]"));
  ASSERT_TRUE(parse_status("[]"));
  EXPECT_FALSE(parse_status("[]")->has_value());
}

}  // namespace
}  // namespace lockstep::jobs
