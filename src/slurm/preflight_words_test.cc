#include "slurm/preflight.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

using Words = std::vector<std::string>;

const Words kNodes = {"a", "b", "c", "d"};

Words without(const Words& words, const Words& left_out) {
  PreflightDecision decision;
  for (const std::string& node : left_out)
    decision.left_out.push_back({node, "why", true});
  return words_without(words, kNodes, decision, 20'001);
}

TEST(PreflightWords, SizeOfTheJob) {
  EXPECT_EQ(size_in({"--nnodes=2", "--", "x", "--nnodes=9"}, 4).wanted, 2);
  EXPECT_EQ(size_in({"--nnodes=1:3"}, 4).at_least, 1);
  EXPECT_EQ(size_in({"--nnodes=1:3"}, 4).wanted, 3);
  EXPECT_EQ(size_in({"train.py"}, 4).at_least, 4);
  EXPECT_EQ(size_in({"--nnodes=x"}, 4).wanted, 4);
}

TEST(PreflightWords, NobodyIsLeftOut) {
  EXPECT_EQ(without({"--nnodes=4", "x"}, {}), (Words{"--nnodes=4", "x"}));
}

TEST(PreflightWords, TheRestMeetsAtItsFirst) {
  EXPECT_EQ(
      without({"--rdzv-backend=lockstep", "--nnodes=3", "--spares=1", "--", "x", "--spares=1"},
              {"a"}),
      (Words{"--rdzv-endpoint=b:20001,c:20001,d:20001", "--rdzv-backend=lockstep", "--nnodes=3:3",
             "--spares=0", "--", "x", "--spares=1"}));
  EXPECT_EQ(without({"--nnodes=1:4", "--rdzv-backend=c10d", "x"}, {"c", "d"}),
            (Words{"--rdzv-endpoint=a:20001", "--nnodes=1:2", "--rdzv-backend=c10d", "x"}));
  EXPECT_EQ(without({"--rdzv-endpoint=z:1", "--nnodes=2", "x"}, {"c"}),
            (Words{"--rdzv-endpoint=z:1", "--nnodes=2:2", "x"}));
  EXPECT_EQ(without({"x"}, {"c"}), (Words{"--nnodes=3", "--rdzv-endpoint=a:20001", "x"}));
}

}  // namespace
}  // namespace lockstep::slurm
