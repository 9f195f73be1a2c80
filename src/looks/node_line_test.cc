#include "looks/node_line.h"

#include "looks/looks_testing.h"

#include <gtest/gtest.h>

namespace lockstep::looks {
namespace {

Fold fold_on(const std::string& node, int first, int ranks,
             const std::vector<stacks::Frame>& frames, Millis quiet) {
  std::vector<RankLook> all;
  all.reserve(static_cast<std::size_t>(ranks));
  for (int rank = first; rank < first + ranks; ++rank) {
    all.push_back({.rank = rank, .pid = 100 + rank, .process = asleep('S', "futex_do_wait")});
    all.back().stack = stack_of(frames);
  }
  std::vector<Seen> seen;
  seen.reserve(all.size());
  for (const RankLook& look : all)
    seen.push_back({&look, what_doing(look), {.quiet = quiet}});
  return fold(node, seen);
}

TEST(LinesOfNodes, FoldTheRanksOfEachNode) {
  const Fold folds[] = {fold_on("n2", 4, 4, in_collective("all_reduce", 61), Millis(9000)),
                        fold_on("n1", 1, 3, in_collective("all_reduce", 61), Millis(9000)),
                        fold_on("n1", 0, 1, in_own_code(31), Millis(9000))};
  Verdict verdict;
  verdict.state = VerdictState::hung;
  verdict.waiting = {1, 2, 3, 4, 5, 6};
  const NodeLines all = node_lines(merge(folds), verdict);
  ASSERT_EQ(all.lines.size(), 4U);
  EXPECT_EQ(all.more, 0U);
  EXPECT_EQ(all.lines[0], (NodeLine{.node = "n1",
                                    .state = "hung",
                                    .ranks = "0",
                                    .count = 1,
                                    .where = "hang_here, job.py:31",
                                    .quiet_ms = 9000}));
  EXPECT_EQ(all.lines[1], (NodeLine{.node = "n1",
                                    .state = "waiting",
                                    .ranks = "1-3",
                                    .count = 3,
                                    .doing = "all_reduce",
                                    .where = "train, job.py:61",
                                    .quiet_ms = 9000}));
  EXPECT_EQ(all.lines[2].node, "n2");
  EXPECT_EQ(all.lines[2].ranks, "4-6");
  EXPECT_EQ(all.lines[3].ranks, "7") << "the verdict does not say that rank 7 waits";
  EXPECT_EQ(all.lines[3].state, "hung");
}

TEST(LinesOfNodes, AreBounded) {
  std::vector<Fold> folds;
  folds.reserve(600);
  for (int node = 0; node < 600; ++node)
    folds.push_back(fold_on("n" + std::to_string(node), node, 1, in_own_code(31), {}));
  const NodeLines all = node_lines(merge(folds), {});
  EXPECT_EQ(all.lines.size(), kMostNodeLines);
  EXPECT_EQ(all.more, 600 - kMostNodeLines);
  EXPECT_EQ(all.lines[511].node, "n511");
}

}  // namespace
}  // namespace lockstep::looks
