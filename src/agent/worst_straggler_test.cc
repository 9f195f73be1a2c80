#include "agent/worst_straggler.h"

#include <gtest/gtest.h>

namespace lockstep::agent {
namespace {

using std::chrono::seconds;

TEST(WorstStraggler, IsTheOneOfTheLongestSpan) {
  const WorstStraggler::TimePoint start{};
  WorstStraggler stragglers;
  EXPECT_EQ(straggler_line(stragglers.worst()), "");
  stragglers.begins(1, "rank 1 (node n0)", start);
  stragglers.ends(start + seconds(70));
  stragglers.begins(3, "rank 3 (node n1, GPU 3)", start + seconds(80));
  EXPECT_EQ(stragglers.worst()->rank, 1) << "the other one is not over";
  // The end of the attempt is the end of the span, too: rank 3 did not recover.
  stragglers.begins(2, "rank 2 (node n1, GPU 2)", start + seconds(180));
  stragglers.ends(start + seconds(190));
  stragglers.ends(start + seconds(900));
  EXPECT_EQ(stragglers.worst()->rank, 3);
  EXPECT_EQ(straggler_line(stragglers.worst()),
            "straggler: rank 3 (node n1, GPU 3) for 1 min 40 s");
}

}  // namespace
}  // namespace lockstep::agent
