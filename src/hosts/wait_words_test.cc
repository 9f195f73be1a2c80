#include "hosts/wait_words.h"

#include <gtest/gtest.h>

namespace lockstep::hosts {
namespace {

using Lines = std::vector<std::string>;
using std::chrono::seconds;

TEST(WaitWords, HostsAtOneStepShareALine) {
  EXPECT_EQ(wait_lines({{"a", "logging in"}}, seconds(5)),
            Lines{"waiting for a for 5 s: logging in"});
  EXPECT_EQ(wait_lines({{"a", "x"}, {"b", "y"}, {"c", "x"}}, seconds(10)),
            (Lines{"waiting for a, c for 10 s: x", "waiting for b for 10 s: y"}));
  std::vector<std::pair<std::string, std::string>> many;
  many.reserve(32);
  for (int i = 0; i < 32; ++i)
    many.emplace_back("gpus-" + std::to_string(i), "x");
  EXPECT_EQ(wait_lines(many, seconds(5)), Lines{"waiting for gpus-0 to gpus-31 for 5 s: x"});
}

TEST(WaitWords, PausesGrowToAMinute) {
  Lines at;
  for (seconds waited{0}; waited < seconds(400); waited += next_notice(waited))
    at.push_back(std::to_string(waited.count()));
  EXPECT_EQ(at, (Lines{"0", "5", "10", "20", "40", "80", "140", "200", "260", "320", "380"}));
}

}  // namespace
}  // namespace lockstep::hosts
