// Which nodes cannot belong to one job, and the texts about other differences.
#include "rendezvous/launched.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace lockstep::rendezvous {
namespace {

NodeFacts node(std::string called, std::string program, int arguments = 0) {
  return {.called = std::move(called),
          .role = "default",
          .launched = {std::move(program), arguments, false, "1.0"},
          .local_world_size = 2,
          .max_restarts = 3};
}

TEST(Launched, TheNameIsTheProgramsWithoutItsFolder) {
  EXPECT_EQ(launched_name("/data/jobs/train.py"), "train.py");
  EXPECT_EQ(launched_name("train.py"), "train.py");
  EXPECT_EQ(launched_name("./trainer/"), "trainer");
  EXPECT_EQ(launched_name("pkg.train"), "pkg.train");
  EXPECT_EQ(launched_name("-"), "-");
  EXPECT_EQ(launched_name("/"), "/");
  EXPECT_EQ(launched_name("/dev/fd/63"), "") << "numbered by the shell, on each node otherwise";
  EXPECT_EQ(launched_name("/proc/self/fd/11"), "");
}

TEST(Launched, AnotherProgramOfTheSameRoleIsNamedWithBothNames) {
  const auto error = other_program(node("b", "eval.py"), node("a", "train.py"), "none");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message,
            "b launches eval.py, a launches train.py, both as role 'default' of the job 'none'");
  EXPECT_NE(error->hint.find("entrypoint=any"), std::string::npos);
  EXPECT_FALSE(other_program(node("b", "train.py", 5), node("a", "train.py"), "none"));
}

TEST(Launched, AnotherRoleOrAnyOrOneThatDoesNotTellMayDiffer) {
  auto b = node("b", "reader.py");
  b.role = "reader";
  EXPECT_FALSE(other_program(b, node("a", "train.py"), "none"));
  b = node("b", "eval.py");
  b.launched.any = true;
  EXPECT_FALSE(other_program(b, node("a", "train.py"), "none"));
  EXPECT_FALSE(other_program(node("a", "train.py"), b, "none"));
  EXPECT_FALSE(other_program(node("b", ""), node("a", "train.py"), "none"));
}

TEST(Launched, DifferencesAreSaidALineEach) {
  std::vector<NodeFacts> nodes = {node("a", "train.py", 2), node("b", "train.py", 2),
                                  node("c", "train.py", 3)};
  EXPECT_EQ(differences(nodes),
            (std::vector<std::string>{"train.py is launched with different "
                                      "numbers of arguments: 2 (a, b), 3 (c)"}));
  nodes[2] = node("c", "train.py", 2);
  EXPECT_TRUE(differences(nodes).empty());
  nodes[1].max_restarts = 0;
  nodes[2].launched.version = "2.0";
  nodes[2].local_world_size = 1;
  EXPECT_EQ(differences(nodes),
            (std::vector<std::string>{
                "the nodes differ in --max-restarts, the lowest counts: 0 (b), 3 (a, c)",
                "the nodes run different versions of Lockstep: 1.0 (a, b), 2.0 (c)",
                "nodes of role 'default' differ in their number of workers: 1 (c), 2 (a, b)"}));
  nodes = {node("a", "train.py"), node("b", "reader.py")};
  nodes[1].role = "reader";
  EXPECT_EQ(differences(nodes),
            (std::vector<std::string>{"the nodes have several roles: default (1 node, 2 workers), "
                                      "reader (1 node, 2 workers)"}));
}

TEST(Launched, FewNamesStandForMany) {
  std::vector<NodeFacts> nodes;
  for (int i = 0; i < 100; ++i)
    nodes.push_back(node(fmt::format("n{}", i), "t", i == 0 ? 1 : 0));
  EXPECT_EQ(differences(nodes).at(0),
            "t is launched with different numbers of arguments: 0 (n1, n2, n3, n4 and 95 more), "
            "1 (n0)");
}

}  // namespace
}  // namespace lockstep::rendezvous
