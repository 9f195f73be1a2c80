#include "jobs/on_slurm/slurm_rows.h"

#include "base/error_testing.h"
#include "jobs/on_slurm/slurm_world_testing.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace lockstep::jobs::on_slurm {
namespace {

std::vector<std::size_t> counted(std::size_t first, std::size_t count) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < count; ++i)
    rows.push_back(first + i);
  return rows;
}

std::string tasks_of(const std::vector<std::size_t>& rows,
                     std::optional<std::int64_t> at_once = {}) {
  const auto array = array_of(rows, at_once, first_row_of(rows));
  return array ? array->tasks : array.error().message;
}

TEST(SlurmRows, AnArrayHasATaskForEachRow) {
  EXPECT_EQ(tasks_of(counted(0, 100), 8), "0-99%8");
  EXPECT_EQ(tasks_of({3, 7, 12, 13}), "3,7,12-13");
  EXPECT_EQ(tasks_of(counted(0, 1000)), "0-999");
  EXPECT_EQ(tasks_of({0}, 0), "--at-once must be at least 1 (got 0)");
  // Numbers beyond MaxArraySize begin at task 0.
  EXPECT_EQ(tasks_of({2000, 2999}), "0,999");
}

TEST(SlurmRows, MoreRowsThanAnArrayHasAreRefused) {
  const auto refused = array_of(counted(0, 1200), {}, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "1200 rows, 0 to 1199, are more than an array job of Slurm has (MaxArraySize is 1001 "
            "by default)");
  EXPECT_EQ(refused.error().hint, "submit 1000 at a time: --sweep-only 0-999");
  EXPECT_FALSE(array_of({1500, 2600}, {}, 1500));
}

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
    made.job = "7";
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

TEST_F(SlurmRowsTest, ThePlanKeepsTheRows) {
  jobs::KnownJob job = known();
  place_.first_row = 2000;
  place_.at_once = 5;
  place_.working = "/w";
  job.plan = plan_text(place_, sweep_.table, {1, 3});
  const auto sweep = sweep_of(job);
  ASSERT_TRUE(sweep && *sweep);
  EXPECT_EQ((*sweep)->table, sweep_.table);
  EXPECT_EQ((*sweep)->rows, (std::vector<std::size_t>{1, 3}));
  const auto place = slurm_place(job);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->first_row, 2000U);
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
