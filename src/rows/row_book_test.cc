#include "rows/row_book.h"

#include "base/error_testing.h"
#include "rows/table.h"

#include <gtest/gtest.h>

namespace lockstep::rows {
namespace {

TEST(RowBook, ReadsWhatARunWrites) {
  const std::string text = begin_line(3, 1000) + begin_line(4, 1001) +
                           end_line(3, 1, 2000, "ValueError: lr") + begin_line(0, 2001) +
                           end_line(4, 0, 2002, "");
  const auto records = read_book(text);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].row, 0U);
  EXPECT_EQ(records[0].state, RowState::running);
  EXPECT_EQ(records[1].state, RowState::failed);
  EXPECT_EQ(records[1].code, 1);
  EXPECT_EQ(records[1].last_line, "ValueError: lr");
  EXPECT_EQ(records[2].state, RowState::done);
  EXPECT_EQ(sets_of(records), (RowSets{.done = {4}, .running = {0}, .failed = {3}}));
}

TEST(RowBook, ANewTryForgetsTheEnd) {
  const auto records =
      read_book(begin_line(3, 1000) + end_line(3, 1, 2000, "x") + begin_line(3, 3000));
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].state, RowState::running);
  EXPECT_EQ(records[0].tries, 2);
  EXPECT_EQ(records[0].code, 0);
  EXPECT_EQ(records[0].last_line, "");
}

TEST(RowBook, TheLastStepTravels) {
  const LastStep step{.step = 7, .line = "step 7: loss 0.3"};
  const auto records =
      read_book(begin_line(3, 1000) + end_line(3, 1, 2000, "x", step) + begin_line(4, 1000));
  const auto read = records_from_json(codec::parse_json(codec::print_json(to_json(records))));
  ASSERT_TRUE(read && read->size() == 2U);
  EXPECT_EQ((*read)[0].last_step, step);
  EXPECT_EQ((*read)[0].last_line, "x");
  EXPECT_FALSE((*read)[1].last_step);
}

TEST(RowBook, AReportCountsTheRows) {
  const Table table{.names = {"lr"}, .rows = {{"1"}, {"2"}, {"3"}}};
  const auto records = read_book(begin_line(0, 1000) + end_line(0, 0, 2000, "") +
                                 begin_line(1, 1000) + end_line(1, 7, 2000, "ValueError"));
  const auto report = report_json(table, {0, 1, 2}, records, 1);
  EXPECT_EQ(report["done"], 1);
  EXPECT_EQ(report["failed"], 1);
  EXPECT_EQ(report["not begun"], 1);
  EXPECT_EQ(codec::print_json(report["rows"][1]),
            R"({"row":1,"values":{"lr":"2"},"state":"failed","tries":1,"began_ms":1000,)"
            R"("ended_ms":2000,"code":7,"last_line":"ValueError"})");
}

// The host was switched off, and `lockstep resume` starts another runner there.
TEST(RowBook, RowsOfAnEarlierRunnerAreLost) {
  const std::string before = run_line(1) + begin_line(3, 1000) + begin_line(4, 1000) +
                             end_line(4, 0, 1001, "") + begin_line(5, 1000);
  const auto records = read_book(before + run_line(2) + begin_line(5, 2000));
  EXPECT_EQ(sets_of(records), (RowSets{.done = {4}, .running = {5}, .lost = {3}}));
  const auto read = records_from_json(codec::parse_json(codec::print_json(to_json(records))));
  ASSERT_TRUE(read);
  EXPECT_EQ(sets_of(*read), sets_of(records));
}

// The power may fail at any byte.
TEST(RowBook, ACutLineCountsForNothing) {
  const std::string begun = begin_line(3, 1000);
  const std::string end = end_line(3, 0, 2000, "");
  for (std::size_t bytes = 0; bytes < end.size(); ++bytes) {
    const auto records = read_book(begun + end.substr(0, bytes));
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].state, RowState::running);
  }
}

TEST(RowBook, OtherLinesAreSkipped) {
  EXPECT_TRUE(read_book("x\n{}\n[]\n{\"row\":-1,\"began_ms\":1}\n{\"row\":10000,\"began_ms\":1}\n"
                        "{\"row\":1,\"ended_ms\":1,\"code\":0}\n{\"row\":1.5,\"began_ms\":1}\n")
                  .empty());
}

TEST(RowBook, AHostsAnswerIsReadBack) {
  const auto records = read_book(begin_line(3, 1000) + end_line(3, 7, 2000, "why") +
                                 begin_line(9, 1000) + begin_line(9, 1000));
  const auto read = records_from_json(codec::parse_json(codec::print_json(to_json(records))));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].code, 7);
  EXPECT_EQ((*read)[0].state, RowState::failed);
  EXPECT_EQ((*read)[1].tries, 2);
  EXPECT_EQ((*read)[1].state, RowState::running);
}

TEST(RowBook, AHostsNonsenseIsRefused) {
  for (const char* text : {"", "{}", "[1]", "[{}]", "[{\"row\":1},{\"row\":1}]",
                           "[{\"row\":10000}]", "[{\"row\":\"1\"}]"})
    EXPECT_EQ(code_of(records_from_json(codec::parse_json(text))), Errc::corrupt) << text;
  const std::string odd =
      R"([{"row":1,"tries":-5,"began_ms":1e300,"ended_ms":1,"code":99999,"last_line":"a\u001b[m"}])";
  const auto read = records_from_json(codec::parse_json(odd));
  ASSERT_TRUE(read);
  EXPECT_EQ((*read)[0].tries, 0);
  EXPECT_EQ((*read)[0].code, 255);
  EXPECT_EQ((*read)[0].last_line, "a\\x1b[m");
}

TEST(LastLine, TakesTheCauseOfAReport) {
  const auto line = [](const char* text) { return last_line_of(codec::parse_json(text), 9); };
  EXPECT_EQ(line(R"({"reason":"no such file"})"), "no such file");
  const char* tail = R"({"root_cause":{"message":"","stderr_tail":["Traceback","Error: x",""]}})";
  EXPECT_EQ(line(tail), "Error: x");
  const char* message = R"j({"root_cause":{"message":"Signal 9 (SIGKILL)","stderr_tail":["x"]}})j";
  EXPECT_EQ(line(message), "Signal 9 (SIGKILL)");
  const char* silent = R"({"root_cause":{"message":"","stderr_tail":[],"exit_code":3}})";
  EXPECT_EQ(line(silent), "a worker ended with exit code 3");
  EXPECT_EQ(line(R"({"root_cause":null})"), "exit code 9");
  EXPECT_EQ(line("x"), "exit code 9");
}

}  // namespace
}  // namespace lockstep::rows
