#include "cli/agents_step.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using StepWords = std::vector<std::string>;

std::optional<slurm::Beginning> beginning(const StepWords& run) {
  StepWords step = {"srun", "-N3", "/j/lockstep", "slurm-node", "--folder", "/j", "--"};
  step.insert(step.end(), run.begin(), run.end());
  return beginning_of(step, [](std::string_view) { return std::nullopt; });
}

TEST(AgentsStep, NodesThatTheFirstAttemptCanDoWithout) {
  EXPECT_EQ(beginning({"--nnodes=2", "train.py"})->to_spare, 0);
  EXPECT_EQ(beginning({"--nnodes=2", "--spares=1", "--", "x"})->to_spare, 1);
  EXPECT_EQ(beginning({"--nnodes", "1:3", "--spares", "1", "x"})->to_spare, 3) << "in two words";
  EXPECT_EQ(beginning({"--nnodes=2", "x", "--spares=9"})->to_spare, 0) << "the training's own";
  EXPECT_EQ(beginning({"train.py"})->to_spare, 0) << "all nodes of the step train";
}

TEST(AgentsStep, WhereTheAgentsMeet) {
  const StepWords own = {"--rdzv-backend=lockstep", "--nnodes=2"};
  const auto at_first_node = [&](const StepWords& more) {
    StepWords words = own;
    words.insert(words.end(), more.begin(), more.end());
    return beginning(words)->at_first_node;
  };
  EXPECT_TRUE(at_first_node({"x", "--rdzv-endpoint=n2"}));
  EXPECT_FALSE(at_first_node({"--rdzv-endpoint", "n2", "x"}));
  EXPECT_FALSE(at_first_node({"--rdzv-backend=etcd3", "--rdzv-endpoint=etcd:2379", "x"}));
  EXPECT_FALSE(at_first_node({"--rdzv-backend=static", "--master-addr=n2", "x"}));
}

TEST(AgentsStep, OtherStepsTellNothing) {
  const auto none = [](std::string_view) { return std::nullopt; };
  EXPECT_FALSE(beginning_of({"bash", "train.sh"}, none));
  EXPECT_FALSE(
      beginning_of({"srun", "l", "slurm-launch", "--in-task", "/j", "/l", "--", "sh"}, none));
  EXPECT_FALSE(beginning({"--nnodes=2", "--no-such-option", "x"}));
}

}  // namespace
}  // namespace lockstep::cli
