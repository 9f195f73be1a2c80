#include "jobs/on_slurm/slurm_rows.h"

#include "base/error_testing.h"
#include "jobs/on_slurm/slurm_job.h"
#include "jobs/on_slurm/slurm_world_testing.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace lockstep::jobs::on_slurm {
namespace {

TEST(SlurmRows, AnIdNamesTasks) {
  EXPECT_TRUE(has_task("12_3", 3));
  EXPECT_FALSE(has_task("12_13", 3));
  EXPECT_FALSE(has_task("3", 3));
  EXPECT_TRUE(has_task("12_[0-2,7%4]", 7));
  EXPECT_TRUE(has_task("12_[0-2,7%4]", 1));
  EXPECT_FALSE(has_task("12_[0-2,7%4]", 4));
  EXPECT_TRUE(has_task("12_[0-8:2]", 6));
  EXPECT_FALSE(has_task("12_[0-8:2]", 5));
  EXPECT_TRUE(has_task("12_[1,3,...]", 500)) << "Slurm cuts a long list";
}

class SlurmRowsTest : public SlurmWorldTest {
 protected:
  SlurmRowsTest() {
    sweep_.table = {.names = {"lr"}, .rows = {{"1"}, {"2"}, {"3"}, {"4"}}};
    sweep_.rows = {0, 1, 2, 3};
    std::filesystem::create_directory(place_.folder + "/rows");
  }
  void keep_row(std::size_t row, const slurm::BatchState& of, const std::string& job = "7") {
    slurm::BatchState state = of;
    const slurm::JobFolder folder(slurm::JobFolder(place_.folder).row(row));
    EXPECT_TRUE(folder.make_row({}));
    state.job = fmt::format("{}_{}", job, row);
    EXPECT_TRUE(folder.keep(state));
  }
  static slurm::JobReport report(const std::string& id, const std::string& state) {
    slurm::JobReport made;
    made.id = id;
    made.job = id.substr(0, id.find('_'));
    made.state = slurm::parse_job_state(state);
    return made;
  }
  JobStatus status(const std::vector<slurm::JobReport>& told) {
    return status_of_rows(slurm_rows(sweep_, place_, told, 1));
  }

  JobSweep sweep_;
};

TEST_F(SlurmRowsTest, RowsAreCountedByTheirRecordsAndBySlurm) {
  keep_row(0, ended("success", 0));
  keep_row(1, {});
  JobStatus now = status({report("7_[2-3]", "PENDING"), report("7_1", "RUNNING")});
  EXPECT_EQ(now.state, JobState::running);
  EXPECT_EQ(now.why, "1 done, 1 running, 2 queued");
  EXPECT_FALSE(now.code);
  now = status({report("7_[1-3]", "PENDING")});
  EXPECT_EQ(now.state, JobState::queued);
}

TEST_F(SlurmRowsTest, AnyRowThatFailedMakesTheCode) {
  for (std::size_t row = 0; row < 4; ++row)
    keep_row(row, row == 2 ? ended("worker", 7) : ended("success", 0));
  JobStatus now = status({});
  EXPECT_EQ(now.state, JobState::failed);
  EXPECT_EQ(now.code, 7);
  EXPECT_EQ(now.why, "3 done, 1 failed");
  keep_row(2, ended("success", 0));
  now = status({});
  EXPECT_EQ(now.state, JobState::succeeded);
  EXPECT_EQ(now.code, 0);
}

TEST_F(SlurmRowsTest, ARowWithoutAKnownEndIsNeverASuccess) {
  for (std::size_t row = 0; row < 3; ++row)
    keep_row(row, ended("success", 0));
  JobStatus now = status({});
  EXPECT_EQ(now.state, JobState::lost);
  EXPECT_FALSE(now.code);
  EXPECT_EQ(now.why, "3 done, 1 lost");
  now = status({report("7_3", "CANCELLED")});
  EXPECT_EQ(now.state, JobState::canceled);
  EXPECT_EQ(now.code, 1);
  // Slurm ended the task before the batch step could begin.
  EXPECT_EQ(status({report("7_3", "NODE_FAIL")}).code, 1);
}

TEST_F(SlurmRowsTest, EachRowIsATaskOfItsArray) {
  place_.spread = {.first_row = 0, .rows = 2};
  place_.more = {"8"};
  // Task 1 of array 7 is row 1, and task 1 of array 8 is row 3.
  EXPECT_EQ(
      status({report("7_0", "COMPLETED"), report("7_1", "RUNNING"), report("8_[0-1%2]", "PENDING")})
          .why,
      "1 done, 1 running, 2 queued");
  EXPECT_EQ(place_of_row(place_, 3).job, "8_1");
  EXPECT_EQ(place_of_row(place_, 1).job, "7_1");
  // Never another row's job.
  EXPECT_FALSE(slurm::is_job_id(place_of_row(place_, 9).job)) << "no array has this row";
  place_.more = {"", "9"};
  EXPECT_FALSE(slurm::is_job_id(place_of_row(place_, 3).job)) << "its array was not submitted";
}

TEST_F(SlurmRowsTest, AnEarlierVersionsPlanHasOneArray) {
  jobs::KnownJob job = known();
  job.plan = R"({"slurm":{"job":"7","folder":"/f","output":"","first_row":1500}})";
  const auto place = slurm_place(job);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->spread.array_of(2499), 0U);
  EXPECT_EQ(place->spread.task_of(2499), 999U);
  EXPECT_FALSE(place->first_row_to_tell(0)) << "the script knows the row";
}

TEST_F(SlurmRowsTest, ThePlanKeepsTheRows) {
  jobs::KnownJob job = known();
  place_.spread = {.first_row = 2000, .rows = 500};
  place_.more = {"", "9"};
  place_.at_once = 5;
  place_.working = "/w";
  job.plan = plan_text(place_, sweep_.table, {1, 3});
  const auto sweep = sweep_of(job);
  ASSERT_TRUE(sweep && *sweep);
  EXPECT_EQ((*sweep)->table, sweep_.table);
  EXPECT_EQ((*sweep)->rows, (std::vector<std::size_t>{1, 3}));
  const auto place = slurm_place(job);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->spread.first_row, 2000U);
  EXPECT_EQ(place->spread.rows, 500U);
  EXPECT_EQ(place->jobs(), (std::vector<std::string>{"7", "", "9"}));
  EXPECT_EQ(place->at_once, 5);
  EXPECT_EQ(place->working, "/w");
}

TEST_F(SlurmRowsTest, ARowIsAJobOfItsOwn) {
  EXPECT_EQ(place_of_row(place_, 3).job, "7_3");
  slurm::BatchState state = ended("success", 0);
  state.output = "/out_3";
  keep_row(3, state, "5");
  const SlurmPlace place = place_of_row(place_, 3);
  EXPECT_EQ(place.job, "5_3") << "of the array that ran the row";
  EXPECT_EQ(place.output, "/out_3");
  EXPECT_EQ(slurm::JobFolder(place.folder).job_id(), "aaaa1111");
}

// A hang that a person or the time limit ended: the cause alone would not tell of it.
TEST_F(SlurmRowsTest, ARowThatHungSaysSo) {
  slurm::BatchState stopped = ended("stopped", 143);
  stopped.words = "the job was stopped";
  keep_row(1, stopped);
  const slurm::JobFolder folder(slurm::JobFolder(place_.folder).row(1));
  const auto last_line = [&] {
    sweep_.rows = {1};
    const auto rows = records_of_rows(slurm_rows(sweep_, place_, {}, 1), place_);
    return rows.size() == 1 ? rows[0].record.last_line : "";
  };
  EXPECT_EQ(last_line(), "the job was stopped");
  ASSERT_TRUE(io::write_file(folder.report(0, "n1"), R"({"schema":2,"node":"n1","attempts_total":1,
    "events":[{"event":"hung","attempt":1,"words":"hung for 31 s: rank 3"}]})"));
  EXPECT_EQ(last_line(), "the job was stopped; hung for 31 s: rank 3");
  ASSERT_TRUE(io::write_file(folder.report(0, "n2"), "[]"));
  const auto reports = SlurmJob(known(), place_).row_reports(1, "n1");
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0]["node"], "n1");
  // --on-hang ended the job, so the cause is the hang.
  slurm::BatchState hung = ended("hang", 1);
  hung.words = "hung for 32 s: rank 3";
  keep_row(1, hung);
  EXPECT_EQ(last_line(), "hung for 32 s: rank 3") << "the hang is told once";
}

// The agents of all rows have the job's id, and a node may run several rows.
TEST_F(SlurmRowsTest, OnlyTheAgentsOfARowAreAskedAboutIt) {
  slurm_.job = "7_1";
  slurm::BatchState state;
  state.number = "9";
  keep_row(1, state);
  slurm_.step = slurm_.says("");
  (void)SlurmJob(known(), place_, world()).row_looks(1, "n1");
  ASSERT_EQ(slurm_.steps.size(), 1U);
  const auto& step = slurm_.steps[0];
  EXPECT_EQ(std::vector<std::string>(step.end() - 3, step.end()),
            (std::vector<std::string>{"slurm-ask", "looks", "aaaa1111[1]"}));
  EXPECT_NE(std::find(step.begin(), step.end(), "--jobid=9"), step.end())
      << "srun refuses the id 7_1";
}

TEST_F(SlurmRowsTest, ARowThatSlurmDoesNotListIsLostAndNotAwaited) {
  for (std::size_t row = 0; row < 3; ++row)
    keep_row(row, ended("success", 0));
  keep_row(3, {});
  const auto followed = follow_slurm_rows(known(), sweep_, place_, false, world());
  ASSERT_TRUE(followed);
  EXPECT_EQ(followed->status.state, JobState::lost);
  EXPECT_FALSE(followed->status.code);
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
