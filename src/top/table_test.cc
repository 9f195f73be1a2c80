#include "top/table.h"

#include "top/text_width.h"
#include "top/top_testing.h"

#include <gtest/gtest.h>

namespace lockstep::top {
namespace {

TableText table_at(const JobRows& job, std::size_t width) {
  return table_of(lines_of(job, {}), width);
}

JobRows full_job() {
  JobRows job = waiting_job(8);
  for (looks::RankRow& row : job.nodes[0].rows) {
    row.node = row.rank < 4 ? "n1" : "n2";
    row.waiting_share = 0.48;
    row.input_share = 0.02;
    row.loaders = 4;
    row.output_age_ms = 3200;
    row.last_line = "epoch 1 loss 0.25";
    row.step = 1200;
    row.step_guessed = true;
    row.steps_per_s = 1.5;
  }
  return job;
}

TEST(Table, NoLineIsWiderThanTheTerminal) {
  const JobRows job = full_job();
  for (std::size_t width = 1; width < 260; ++width) {
    const TableText table = table_at(job, width);
    EXPECT_LE(columns_of(table.head), width);
    for (const std::string& line : table.lines)
      EXPECT_LE(columns_of(line), width);
  }
}

TEST(Table, OfFortyColumnsHasRanksStatesAndLines) {
  const TableText table = table_at(waiting_job(8), 40);
  EXPECT_EQ(table.head, "RANK  STATE   WHERE");
  EXPECT_EQ(table.lines.at(0), "0,2-7 waiting step, train.py:88");
  EXPECT_EQ(table.lines.at(1), "1     hung    collate, data.py:41");
}

TEST(Table, HasNoFiguresOfARankWithoutAProcessHere) {
  JobRows job = full_job();
  for (looks::RankRow& row : job.nodes[0].rows)
    if (row.rank == 1) row.pid = 0;
  const TableText table = table_at(job, 200);
  EXPECT_NE(table.lines.at(0).find("1.00"), std::string::npos) << table.lines.at(0);
  EXPECT_EQ(table.lines.at(1).find("1.00"), std::string::npos) << table.lines.at(1);
}

TEST(Table, AListOfRanksIsNeverCut) {
  std::vector<looks::RankRow> rows;
  for (int rank = 0; rank < 60; rank += 2)
    rows.push_back(row_at(rank, "training", "f, a.py:1"));
  EXPECT_EQ(table_at(job_of(rows), 40).lines.at(0).substr(0, 9), "30 ranks ");
}

TEST(Table, HasGpusOnlyWhereThereAreSome) {
  JobRows job = waiting_job(8);
  EXPECT_EQ(table_at(job, 200).head.find("GPU"), std::string::npos);
  auto& rows = job.nodes[0].rows;
  rows[0].gpu = 0;
  rows[0].gpu_share = 1;
  rows[0].gpu_memory_bytes = std::int64_t{70} << 30;
  rows[2].gpu_share = 0.5;
  const TableText table = table_at(job, 80);
  EXPECT_NE(table.head.find(" GPU GPUMEM"), std::string::npos) << table.head;
  EXPECT_NE(table.lines.at(0).find(" 75%    70G"), std::string::npos) << table.lines.at(0);
  EXPECT_NE(table.lines.at(1).find("   -      -"), std::string::npos) << table.lines.at(1);
}

TEST(Table, OfAWideTerminalHasAllThatIsKnown) {
  const TableText table = table_at(full_job(), 200);
  for (const char* title : {"RANK", "NODE", "STATE", "WHERE", "WAIT", "INPUT", "CPU", "MEM",
                            "LOADERS", "OUT", "STEP", "STEPS/S", "LAST LINE"})
    EXPECT_NE(table.head.find(title), std::string::npos) << title;
  const std::string& line = table.lines.at(0);
  for (const char* part : {"0,2-7", "2 nodes", "waiting", "all_reduce: step, train.py:88", "48%",
                           "2%", "1.00", "1.0G", "3s", "~1200", "1.50", "epoch 1 loss 0.25"})
    EXPECT_NE(line.find(part), std::string::npos) << part << " in " << line;
}

TEST(Table, ColumnsWithoutAnythingToSayAreLeftOut) {
  const TableText table = table_at(waiting_job(8), 200);
  for (const char* title : {"NODE", "INPUT", "LOADERS", "STEP", "LAST LINE"})
    EXPECT_EQ(table.head.find(title), std::string::npos) << title;
  EXPECT_EQ(table_at(job_of({}), 80).lines.size(), 0U);
}

TEST(Where, KeepsTheLineWhereTheColumnIsNarrow) {
  const looks::RankRow row = waiting_job(2).nodes[0].rows[0];
  EXPECT_EQ(where_text(row), "all_reduce: step, train.py:88");
  EXPECT_EQ(where_text(row, 20), "step, train.py:88");
  EXPECT_EQ(where_text(row, 12), "train.py:88");
  EXPECT_EQ(where_text(looks::RankRow{}), "-");
  looks::RankRow native;
  native.doing = "no Python stack";
  EXPECT_EQ(where_text(native, 5), "no Python stack");
}

TEST(Numbers, AreShort) {
  EXPECT_EQ(age_text(-1), "-");
  EXPECT_EQ(age_text(99'999), "99s");
  EXPECT_EQ(age_text(100'000), "1m");
  EXPECT_EQ(age_text(5LL * 3'600'000), "5h");
  EXPECT_EQ(age_text(5LL * 86'400'000), "5d");
  EXPECT_EQ(memory_text(0), "0K");
  EXPECT_EQ(memory_text(812LL << 20), "812M");
  EXPECT_EQ(memory_text(1200LL << 20), "1.2G");
  EXPECT_EQ(memory_text(80LL << 30), "80G");
  EXPECT_EQ(memory_text(1023LL << 20), "1.0G");
  EXPECT_EQ(ranks_text({0, 1, 2, 5}), "0-2,5");
}

}  // namespace
}  // namespace lockstep::top
