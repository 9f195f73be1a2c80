#include "base/text.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Text, ParseIntIsPythonsInt) {
  EXPECT_EQ(parse_int(" 12 "), 12);
  EXPECT_EQ(parse_int("-3"), -3);
  EXPECT_EQ(parse_int("+1_000"), 1000);
  for (const char* bad :
       {"", "-", "1.0", "0x10", "_1", "1_", "1__0", "12abc", "99999999999999999999"})
    EXPECT_EQ(parse_int(bad), std::nullopt) << bad;
}

TEST(Text, ParseFloat) {
  EXPECT_EQ(parse_float("0.5"), 0.5);
  EXPECT_EQ(parse_float("1e-2"), 0.01);
  EXPECT_EQ(parse_float("nan"), std::nullopt);
  EXPECT_EQ(parse_float("1,5"), std::nullopt);
}

TEST(Text, ShellQuote) {
  EXPECT_EQ(shell_quote("a-b_c.py"), "a-b_c.py");
  EXPECT_EQ(shell_quote(""), "''");
  EXPECT_EQ(shell_quote("it's $x"), "'it'\\''s $x'");
}

TEST(Text, DidYouMean) {
  const std::vector<std::string> names = {"--nproc-per-node", "--nnodes", "--max-restarts"};
  EXPECT_EQ(did_you_mean("--nproc-per-nod", names), "--nproc-per-node");
  EXPECT_EQ(did_you_mean("--max-restart", names), "--max-restarts");
  EXPECT_EQ(did_you_mean("--zzzzzzzzz", names), std::nullopt);
}

TEST(Text, PrintableHidesControlBytes) {
  EXPECT_EQ(printable("a\nb\x1b"), "a\\x0ab\\x1b");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
}

TEST(Text, PrintableKeepsUtf8AndEscapesWhatSteersATerminal) {
  const std::string good = "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x9a\x80";
  EXPECT_EQ(printable(good), good);
  EXPECT_EQ(printable("a\xc2\x9b"
                      "2J"),
            "a\\xc2\\x9b"
            "2J");  // CSI
  EXPECT_EQ(printable("\x9b"
                      "2J\xe2\x82"),
            "\\x9b"
            "2J\\xe2\\x82");
}

TEST(Text, PrintableCutsBetweenCharacters) {
  EXPECT_EQ(printable("ab\xe2\x82\xac", 4), "ab...");
  EXPECT_EQ(printable("ab\xe2\x82\xac", 5), "ab\xe2\x82\xac");
  EXPECT_EQ(printable("abc", 0), "...");
}

}  // namespace
}  // namespace lockstep
