#include "jobs/on_slurm/row_arrays.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace lockstep::jobs::on_slurm {
namespace {

using Texts = std::vector<std::string>;

std::vector<std::size_t> counted(std::size_t first, std::size_t count) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < count; ++i)
    rows.push_back(first + i);
  return rows;
}

// Returns "INDEX: TASKS of ROW" for each array.
Texts arrays(const std::vector<std::size_t>& rows, std::size_t most,
             std::optional<std::int64_t> at_once = {}) {
  const auto made = arrays_of(rows, at_once, spread_of(rows, most));
  if (!made) return {made.error().message};
  Texts texts;
  for (const RowArray& each : *made)
    texts.push_back(fmt::format("{}: {} of {}", each.index, each.tasks, each.first_row));
  return texts;
}

TEST(RowArrays, OneArrayHasATaskForEachRow) {
  EXPECT_EQ(arrays(counted(0, 100), 1000, 8), (Texts{"0: 0-99%8 of 0"}));
  EXPECT_EQ(arrays({3, 7, 12, 13}, 1000), (Texts{"0: 3,7,12-13 of 0"}));
  EXPECT_EQ(arrays(counted(0, 1000), 1000), (Texts{"0: 0-999 of 0"}));
  // No task may have the number 1000 or more, so the first row is task 0.
  EXPECT_EQ(arrays({2500, 3499}, 1000), (Texts{"0: 0,999 of 2500"}));
}

TEST(RowArrays, ManyRowsAreSeveralArrays) {
  EXPECT_EQ(arrays(counted(0, 2345), 1000, 4),
            (Texts{"0: 0-999%4 of 0", "1: 0-999%4 of 1000", "2: 0-344%4 of 2000"}));
  EXPECT_EQ(arrays(counted(0, 1001), 1000), (Texts{"0: 0-999 of 0", "1: 0 of 1000"}));
  EXPECT_EQ(arrays(counted(1500, 1100), 1000), (Texts{"0: 500-999 of 1000", "1: 0-599 of 2000"}));
  EXPECT_EQ(arrays({5, 9000}, 1000), (Texts{"0: 5 of 0", "9: 0 of 9000"})) << "7 are left out";
  EXPECT_EQ(arrays(counted(0, 25), 10), (Texts{"0: 0-9 of 0", "1: 0-9 of 10", "2: 0-4 of 20"}));
}

// `lockstep resume` runs some rows of each array again, as the tasks that they were.
TEST(RowArrays, ARowKeepsItsTask) {
  const auto spread = spread_of(counted(1500, 1100), 1000);
  const auto again = arrays_of({1999, 2001}, {}, spread);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->at(0).tasks, "999");
  EXPECT_EQ(again->at(1).tasks, "1");
  EXPECT_EQ(arrays_of({2001}, {}, spread)->at(0).index, 1U);
}

TEST(RowArrays, OnlyMoreRowsThanMayRunAtOnceNeedAChain) {
  EXPECT_FALSE(must_chain(3, std::nullopt));
  EXPECT_FALSE(must_chain(3, 3));
  EXPECT_TRUE(must_chain(4, 3));
}

TEST(RowArrays, FewerRowsAreThoseOfTheFirstArrays) {
  const auto made = arrays_of({5, 7, 1000, 2001}, {}, {.first_row = 0, .rows = 1000});
  EXPECT_EQ(fewer_rows_hint(*made, 2), "submit fewer rows: --sweep-only 5,7,1000");
}

TEST(RowArrays, WhatCannotRunIsRefused) {
  EXPECT_EQ(arrays({}, 1000), (Texts{"the sweep has no row to run"}));
  EXPECT_EQ(arrays({0}, 1000, 0), (Texts{"--at-once must be at least 1 (got 0)"}));
}

TEST(RowArrays, TheSiteSaysHowManyTasksAnArrayHas) {
  EXPECT_EQ(array_rows_of({}), 1000U);
  EXPECT_EQ(array_rows_of({{"MaxArraySize", "11"}}), 10U);
  EXPECT_EQ(array_rows_of({{"MaxArraySize", "4000001"}}), 10'000U);
  EXPECT_EQ(array_rows_of({{"MaxArraySize", "0"}}), 1U) << "sbatch says that there are no arrays";
  EXPECT_EQ(array_rows_of({{"MaxArraySize", "1001"},
                           {"SchedulerParameters", "bf_interval=1,max_array_tasks=50"}}),
            50U);
}

TEST(RowArrays, AnArrayWaitsForTheOneBefore) {
  const RowArray array{.index = 1, .first_row = 1000, .tasks = "0-9%2"};
  const Texts settings = {"--array=0-999%2", "--time=5"};
  EXPECT_EQ(array_words(settings, array, ""), (Texts{"--time=5", "--array=0-9%2"}));
  EXPECT_EQ(array_words(settings, array, "12"),
            (Texts{"--time=5", "--array=0-9%2", "--dependency=afterany:12"}));
  EXPECT_EQ(array_words({"--dependency=afterok:3"}, array, "12").back(),
            "--dependency=afterok:3,afterany:12");
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
