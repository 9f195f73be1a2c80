#include "jobs/on_slurm/script_array.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::jobs::on_slurm {
namespace {

TEST(ScriptArray, TasksAreRows) {
  const auto tasks = [](const char* array) {
    const auto sweep = sweep_of_array(array);
    return sweep ? rows::print_row_set(sweep->rows) : sweep.error().message;
  };
  EXPECT_EQ(tasks("0-31"), "0-31");
  EXPECT_EQ(tasks("7"), "7");
  EXPECT_EQ(tasks("5-7,1,3,6%2"), "1,3,5-7");
  EXPECT_EQ(tasks("1-9:4"), "1,5,9");
  EXPECT_EQ(tasks("9999"), "9999");
}

TEST(ScriptArray, ARowHasTheNumberOfItsTask) {
  const auto sweep = sweep_of_array("2-4:2%3");
  ASSERT_TRUE(sweep);
  EXPECT_EQ(sweep->array, "2-4:2%3");
  EXPECT_EQ(sweep->at_once, 3);
  EXPECT_EQ(rows::row_text(sweep->table, 4), "task=4");
  EXPECT_EQ(sweep->table.rows.size(), 5U);
}

TEST(ScriptArray, OtherTextIsRefused) {
  for (const char* text :
       {"", "a", "-1", "3-1", "1-", "1:2", "1-9:0", "1,,2", "1-3%", "1-3%0", "10000",
        "0-99999999999", " 1", "+1", "1%a", "1-3:1:1", "0-3%+2", "0-3%4_0"})
    EXPECT_EQ(code_of(sweep_of_array(text)), Errc::invalid_input) << text;
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
