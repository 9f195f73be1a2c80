#include "launchers/accelerate_answer.h"

#include <gtest/gtest.h>

namespace lockstep::launchers {
namespace {

using Words = std::vector<std::string>;

const Words kGiven = {"--multi_gpu", "t.py", "$x"};

Launch read(std::string_view answer, bool placed = false) {
  auto launch = read_accelerate_answer(answer, kGiven, {.placed_by_scheduler = placed});
  EXPECT_TRUE(launch) << launch.error().message;
  return launch.value_or(Launch{});
}

TEST(AccelerateAnswer, ItsTorchrunIsOurs) {
  const Launch launch = read(
      R"({"version": "1.14.0", "torchrun": ["--nproc-per-node=2", "--module"], "script": "pkg", "args": ["--", "b c"],
          "env": ["ACCELERATE_MIXED_PRECISION=bf16"]})");
  EXPECT_EQ(launch.launcher, Launcher::accelerate);
  EXPECT_EQ(launch.run, (Words{"--nproc-per-node=2", "--module", "--", "pkg", "--", "b c"}));
  EXPECT_EQ(launch.env, Words{"ACCELERATE_MIXED_PRECISION=bf16"});
  EXPECT_TRUE(launch.notes.empty());
}

TEST(AccelerateAnswer, UnderASchedulerItsWordsOfNodesGo) {
  const std::string_view answer =
      R"({"torchrun": ["--nnodes=2", "--node-rank=0", "--master-addr=a"], "script": "t.py", "args": [], "env": []})";
  EXPECT_EQ(read(answer, true).run, (Words{"--", "t.py"}));
  EXPECT_EQ(read(answer, true).nodes.count, "2");
  EXPECT_EQ(read(answer).run,
            (Words{"--nnodes=2", "--node-rank=0", "--master-addr=a", "--", "t.py"}));
}

TEST(AccelerateAnswer, OneProcessHasNoRank) {
  const Launch launch = read(
      R"({"command": ["/usr/bin/python3", "t.py", "$x"], "env": ["ACCELERATE_USE_CPU=True", "MASTER_PORT=1"]})");
  ASSERT_GT(launch.run.size(), 8U);
  EXPECT_EQ(Words(launch.run.begin(), launch.run.begin() + 4),
            (Words{"--no-python", "--", "env", "--unset=RANK"}));
  EXPECT_EQ(Words(launch.run.end() - 4, launch.run.end()),
            (Words{"MASTER_PORT=1", "/usr/bin/python3", "t.py", "$$x"}));
  EXPECT_EQ(launch.env.front(), "ACCELERATE_USE_CPU=True");
}

TEST(AccelerateAnswer, ItsDeepspeedIsOursToo) {
  const Launch launch = read(
      R"({"command": ["deepspeed", "--hostfile", "h", "--no_local_rank", "t.py"], "env": ["A=1"]})");
  EXPECT_EQ(launch.run, (Words{"--hostfile=h", "--exit-code=worker", "--", "t.py"}));
  EXPECT_EQ(launch.env, Words{"A=1"});
}

TEST(AccelerateAnswer, WhatIsNotUnderstoodRunsAsItIs) {
  for (const char* answer : {"", "[]", "{}", R"({"error": "TypeError: x"})", R"({"torchrun": [1]})",
                             R"({"command": ["mpirun", "-n", "2"], "env": []})"}) {
    const Launch launch = read(answer);
    EXPECT_EQ(launch.run,
              (Words{"--no-python", "--", "accelerate", "launch", "--multi_gpu", "t.py", "$$x"}))
        << answer;
    ASSERT_EQ(launch.notes.size(), 1U) << answer;
    EXPECT_TRUE(launch.notes[0].starts_with("accelerate launch runs by itself, in one process: "));
  }
}

TEST(AccelerateAnswer, WordsThatItRefusesAreRefused) {
  const auto refused = read_accelerate_answer(R"({"exit": 2})", kGiven, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "accelerate launch refuses these words");
}

TEST(AccelerateAnswer, WhatRunsByItselfIsKnown) {
  const std::vector<std::string> words = {"train.py"};
  EXPECT_TRUE(is_accelerate_itself(accelerate_itself(words, "why")));
  EXPECT_FALSE(is_accelerate_itself(*read_launch(
      std::vector<std::string>{"torchrun", "--no-python", "accelerate", "launch"}, {})));
}

}  // namespace
}  // namespace lockstep::launchers
