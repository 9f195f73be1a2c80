#include "jobs/agent_answers.h"

#include "looks/row.h"

#include <gtest/gtest.h>

namespace lockstep::jobs {
namespace {

using Texts = std::vector<std::string>;

TEST(AgentAnswers, AListHasAnElementForEachAgent) {
  EXPECT_EQ(agent_texts("[{\"a\": 1}, 7]\n"), (Texts{"{\"a\":1}", "7"}));
  EXPECT_EQ(agent_list({"{\"a\":1}", "7"}), "[{\"a\":1},7]");
  EXPECT_EQ(agent_list({}), "[]");
}

TEST(AgentAnswers, AHostileListIsBounded) {
  for (const char* odd : {"", "[", "{}", "7", "welcome", "[1]["})
    EXPECT_EQ(agent_texts(odd), Texts{}) << odd;
  std::string many = "[0";
  for (int i = 0; i < 5000; ++i)
    many += ",0";
  EXPECT_EQ(agent_texts(many + "]").size(), 1024U);
}

TEST(AgentAnswers, TheAnswersOfOneAgentCountOnce) {
  const auto rows = [](const std::string& node, int rank) {
    return looks::rows_json({.node = node, .rows = {{.rank = rank, .node = node}}});
  };
  std::vector<looks::NodeRows> nodes;
  add_answers(nodes, {rows("n1", 0), rows("n2", 1), rows("n1", 0), "7"}, looks::read_rows);
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[1].node, "n2");
}

}  // namespace
}  // namespace lockstep::jobs
