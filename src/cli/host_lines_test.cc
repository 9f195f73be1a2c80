// Each host has one line, which fits into one row and never holds control characters.
#include "cli/host_lines.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

TEST(HostLines, OnePerHost) {
  HostLines lines({"a", "b"});
  EXPECT_EQ(lines.erase(), "");
  lines.put(0, "step 1 of 2: toy\n  Collecting ");
  EXPECT_EQ(lines.draw(80), "a: step 1 of 2: toy\nb: waiting\n");
  lines.put(0, "toy\n");
  EXPECT_EQ(lines.draw(80), "\x1b[2A\x1b[Ja: step 1 of 2: toy | Collecting toy\nb: waiting\n");
  lines.put(0, "\n  \nstep 2 of 2: x\n");
  lines.put(1, "  a\x1b[31mb\n");
  EXPECT_EQ(lines.draw(80), "\x1b[2A\x1b[Ja: step 2 of 2: x\nb: waiting | a\\x1b[31mb\n");
  EXPECT_EQ(lines.erase(), "\x1b[2A\x1b[J");
  EXPECT_EQ(lines.erase(), "");
}

TEST(HostLines, FitOneRowEach) {
  HostLines lines({"a"});
  lines.put(0, "step: " + std::string(5000, 'x') + "\n");
  const std::string drawn = lines.draw(40);
  EXPECT_EQ(drawn.size(), 40U) << drawn;  // the end of the line included
  EXPECT_TRUE(drawn.ends_with("x...\n")) << drawn;
}

}  // namespace
}  // namespace lockstep::cli
