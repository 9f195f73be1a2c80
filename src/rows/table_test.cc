#include "rows/table.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::rows {
namespace {

TEST(Grid, TheLastAxisChangesFastest) {
  const auto table = grid({"lr=1e-3,3e-4", "seed=0-2"});
  ASSERT_TRUE(table);
  EXPECT_EQ(table->names, (std::vector<std::string>{"lr", "seed"}));
  ASSERT_EQ(table->rows.size(), 6U);
  EXPECT_EQ(row_text(*table, 0), "lr=1e-3 seed=0");
  EXPECT_EQ(row_text(*table, 2), "lr=1e-3 seed=2");
  EXPECT_EQ(row_text(*table, 3), "lr=3e-4 seed=0");
}

// Numbers with an exponent, dates and names with a dash are no ranges.
TEST(Grid, OnlyWholeNumbersMakeARange) {
  const auto table = grid({"x=1e-3,2024-01-02,resnet-50,01-02,5-3,-1,\"0-1\",7-8,a-"});
  ASSERT_TRUE(table);
  std::vector<std::string> values;
  for (const auto& row : table->rows)
    values.push_back(row[0]);
  EXPECT_EQ(values, (std::vector<std::string>{"1e-3", "2024-01-02", "resnet-50", "01-02", "5-3",
                                              "-1", "0-1", "7", "8", "a-"}));
}

TEST(Grid, QuotesKeepAComma) {
  const auto table = grid({R"(opt="a,b","say ""no""",c)"});
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 3U);
  EXPECT_EQ(table->rows[0][0], "a,b");
  EXPECT_EQ(table->rows[1][0], "say \"no\"");
}

TEST(Grid, BadAxesAreRefused) {
  for (const char* axis : {"lr", "=1", "1lr=2", "l r=1", "lr=", "lr=\"a", "lr=\"a\"b", "lr=a\nb",
                           "lr=a\tb", "row=1", "part=1", "Table=1"})
    EXPECT_EQ(code_of(grid({axis})), Errc::invalid_input) << axis;
  EXPECT_EQ(code_of(grid({"lr=1", "lr=2"})), Errc::invalid_input);
  // Both would be LOCKSTEP_SWEEP_A_B.
  EXPECT_EQ(code_of(grid({"a.b=1", "a-b=2"})), Errc::invalid_input);
}

TEST(Grid, TheNumberOfRowsIsBounded) {
  EXPECT_TRUE(grid({"a=1-100", "b=1-100"}));
  EXPECT_EQ(code_of(grid({"a=1-100", "b=1-101"})), Errc::invalid_input);
  EXPECT_EQ(code_of(grid({"a=0-9223372036854775807"})), Errc::invalid_input);
  const auto largest = grid({"a=9223372036854775806-9223372036854775807"});
  ASSERT_TRUE(largest);
  EXPECT_EQ(largest->rows, (std::vector<std::vector<std::string>>{{"9223372036854775806"},
                                                                  {"9223372036854775807"}}));
}

TEST(Csv, ReadsWhatSpreadsheetsWrite) {
  const auto table = read_csv("\xef\xbb\xbflr, seed\r\n1e-3,0\r\n\r\n\"3,4\", 1 \r\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->names, (std::vector<std::string>{"lr", "seed"}));
  EXPECT_EQ(table->rows, (std::vector<std::vector<std::string>>{{"1e-3", "0"}, {"3,4", "1"}}));
}

TEST(Csv, PrintsWhatItReads) {
  const Table table{.names = {"a", "b"},
                    .rows = {{"", "x"}, {"1,2", "say \"no\""}, {" s ", "0-4"}}};
  EXPECT_EQ(read_csv(print_csv(table)), table);
}

TEST(Csv, BadFilesAreRefused) {
  for (const char* text : {"", "lr\n", "lr,seed\n1\n", "lr\n\"a\n", "lr\n1,2\n", "9\n1\n"})
    EXPECT_EQ(code_of(read_csv(text)), Errc::invalid_input) << text;
  EXPECT_EQ(code_of(read_csv("a\n" + std::string(kMostFile, 'x'))), Errc::invalid_input);
}

TEST(Row, FillsItsNamesAndNoOtherBraces) {
  const auto table = grid({"lr=1e-3", "seed=7"});
  ASSERT_TRUE(table);
  EXPECT_EQ(filled("--lr={lr}", *table, 0), "--lr=1e-3");
  EXPECT_EQ(filled("{lr}/{seed}/{row}", *table, 0), "1e-3/7/0");
  EXPECT_EQ(filled(R"({"a": {seed}, "b": {x}} {)", *table, 0), R"({"a": 7, "b": {x}} {)");
  EXPECT_EQ(filled("{x{lr}", *table, 0), "{x1e-3");
}

TEST(Row, HasVariables) {
  const auto table = grid({"optim.lr=1e-3"});
  ASSERT_TRUE(table);
  EXPECT_EQ(row_variables(*table, 0),
            (std::vector<std::string>{"LOCKSTEP_SWEEP_ROW=0", "LOCKSTEP_SWEEP_OPTIM_LR=1e-3"}));
}

TEST(RowSet, ReadsWhatItPrints) {
  const std::vector<std::size_t> rows = {0, 3, 4, 5, 9};
  EXPECT_EQ(print_row_set(rows), "0,3-5,9");
  const auto read = read_row_set("9,3-5,0,4", 10);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, rows);
  EXPECT_EQ(print_row_set({}), "");
}

TEST(RowSet, BadSetsAreRefused) {
  for (const char* text :
       {"", "a", "3-1", "10", "0-10", "-1", "1-", "1,,2", "99999999999999999999"})
    EXPECT_EQ(code_of(read_row_set(text, 10)), Errc::invalid_input) << text;
}

}  // namespace
}  // namespace lockstep::rows
