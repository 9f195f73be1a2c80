#include "top/job_rows.h"

#include "top/top_testing.h"

#include <gtest/gtest.h>

namespace lockstep::top {
namespace {

std::vector<int> order_of(const JobRows& job, Sort sort) {
  std::vector<int> order;
  for (const Line& line : lines_of(job, {.sort = sort, .folds = false}))
    order.push_back(line.ranks.front());
  return order;
}

TEST(JobRows, AreReadBack) {
  const JobRows job = waiting_job(3);
  const auto again = read_job_rows(job_rows_json(job));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, job.id);
  EXPECT_EQ(again->place, job.place);
  EXPECT_EQ(again->state, "running");
  EXPECT_EQ(again->nodes, job.nodes);
}

TEST(JobRows, OfAHostileHostArePrintable) {
  for (const char* text : {"", "[]", "{}", "{\"nodes\": 3}"})
    EXPECT_FALSE(read_job_rows(text)) << text;
  const auto job =
      read_job_rows("{\"id\": \"a\\u001b\", \"nodes\": [3, {}, {\"words\": \"\\n\"}]}");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->id, "a\\x1b");
  for (const looks::NodeRows& node : job->nodes)
    EXPECT_EQ(node.words.find('\n'), std::string::npos);
}

TEST(Lines, RanksThatAreAlikeAreOne) {
  const JobRows job = waiting_job(5);
  const auto lines = lines_of(job, {});
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].ranks, (std::vector{0, 2, 3, 4}));
  EXPECT_EQ(lines[1].ranks, std::vector{1});
  EXPECT_EQ(lines_of(job, {.folds = false}).size(), 5U);
}

TEST(Lines, OfSeveralRanksHaveMeansAndTheNewestOutput) {
  JobRows job =
      job_of({row_at(0, "training", "f, a.py:1"), row_at(1, "training", "f, a.py:1", "n2"),
              row_at(2, "training", "f, a.py:1", "n2")});
  auto& rows = job.nodes[0].rows;
  rows[1].cpu = 4;
  rows[1].waiting_share = 0.5;
  rows[1].output_age_ms = 7000;
  rows[1].last_line = "older";
  rows[2].output_age_ms = 100;
  rows[2].last_line = "newer";
  rows[1].step = 8;
  rows[2].step = 7;
  looks::RankRow far{.rank = 3, .node = "n3", .state = "training"};
  far.where = "f, a.py:1";
  rows.insert(rows.begin(), far);
  const Line line = lines_of(job, {}).at(0);
  EXPECT_DOUBLE_EQ(line.row.cpu, 2);
  EXPECT_EQ(line.row.waiting_share, 0.5) << "the others are not known";
  EXPECT_EQ(line.row.output_age_ms, 100);
  EXPECT_EQ(line.row.last_line, "newer");
  EXPECT_EQ(line.row.step, 7);
  EXPECT_EQ(line.nodes, (std::vector<std::string>{"n3", "n1", "n2"}));
  EXPECT_EQ(line.row.memory_bytes, std::int64_t{1} << 30) << "that of rank 3 is not known";
}

TEST(Lines, AreSortedByAnyColumn) {
  JobRows job =
      job_of({row_at(0, "training", "f, a.py:1", "n3"), row_at(1, "hung", "f, a.py:1", "n2"),
              row_at(2, "waiting", "f, a.py:1", "n1")});
  auto& rows = job.nodes[0].rows;
  rows[0].cpu = 0.1;
  rows[2].cpu = 3;
  rows[0].waiting_share = 0.2;
  rows[1].waiting_share = 0.9;
  rows[1].output_age_ms = 5;
  rows[2].output_age_ms = 50;
  rows[1].gpu_share = 0.1;
  rows[0].gpu_share = 0.9;
  EXPECT_EQ(order_of(job, Sort::rank), (std::vector{0, 1, 2}));
  EXPECT_EQ(order_of(job, Sort::node), (std::vector{2, 1, 0}));
  EXPECT_EQ(order_of(job, Sort::state), (std::vector{1, 2, 0}));
  EXPECT_EQ(order_of(job, Sort::cpu), (std::vector{2, 1, 0}));
  EXPECT_EQ(order_of(job, Sort::wait), (std::vector{1, 0, 2})) << "unknown comes last";
  EXPECT_EQ(order_of(job, Sort::output), (std::vector{2, 1, 0}));
  EXPECT_EQ(order_of(job, Sort::gpu), (std::vector{0, 1, 2}));
}

TEST(Lines, AreFilteredByTextOrRank) {
  const JobRows job = waiting_job(12);
  const auto count = [&](const std::string& filter) {
    std::size_t ranks = 0;
    for (const Line& line : lines_of(job, {.filter = filter}))
      ranks += line.ranks.size();
    return ranks;
  };
  EXPECT_EQ(count("DATA.py"), 1U);
  EXPECT_EQ(count("waiting"), 11U);
  EXPECT_EQ(count("1"), 1U) << "a number is a rank, also where a line has it";
  EXPECT_EQ(count("no such"), 0U);
}

}  // namespace
}  // namespace lockstep::top
