#include "launchers/launch_words.h"

#include <gtest/gtest.h>

namespace lockstep::launchers {
namespace {

using Words = std::vector<std::string>;

Launch read(Words words, bool placed = false) {
  words.insert(words.begin(), "deepspeed");
  auto launch = read_launch(words, {.placed_by_scheduler = placed});
  EXPECT_TRUE(launch) << launch.error().message;
  return launch.value_or(Launch{});
}

std::string error(Words words) {
  words.insert(words.begin(), "deepspeed");
  const auto launch = read_launch(words, {});
  return launch ? "" : launch.error().message;
}

TEST(DeepspeedWords, OneMachineHasAWorkerForEveryDevice) {
  const Launch launch = read({"train.py", "--deepspeed", "ds.json", "$x"});
  EXPECT_EQ(launch.launcher, Launcher::deepspeed);
  EXPECT_EQ(launch.run, (Words{"--slots=gpu", "--exit-code=worker", "--", "train.py",
                               "--local_rank=${local_rank}", "--deepspeed", "ds.json", "$$x"}));
  EXPECT_EQ(read({"--num_gpus=3", "--master_port", "29501", "--no_local_rank", "t.py"}).run,
            (Words{"--slots=0,1,2", "--master-port=29501", "--exit-code=worker", "--", "t.py"}));
  EXPECT_EQ(read({"-i", "localhost:1,3", "t.py"}).run.front(), "--slots=1,3");
  EXPECT_EQ(read({"-i", "localhost:3,1,3@localhost:2", "t.py"}).run.front(), "--slots=1,2,3");
  EXPECT_EQ(read({"--num_accelerators", "2", "t.py"}).run.front(), "--slots=0,1");
}

TEST(DeepspeedWords, HostsComeFromTheHostfile) {
  const Launch launch = read({"--hostfile", "h", "--include=a@b:0,2", "--master_addr", "a",
                              "--launcher", "OpenMPI", "--module", "pkg.train", "-x"});
  EXPECT_EQ(launch.run, (Words{"--hostfile=h", "--include=a@b:0,2", "--exit-code=worker",
                               "--module", "--", "pkg.train", "--local_rank=${local_rank}", "-x"}));
  EXPECT_EQ(launch.nodes.hostfile, "h");
  EXPECT_EQ(launch.nodes.include, "a@b:0,2");
  EXPECT_EQ(launch.notes, (Words{"--master_addr dropped: Lockstep's agents find each other",
                                 "--launcher openmpi dropped: Lockstep's agents start the ranks"}));
  EXPECT_EQ(read({"-H", "h", "--num_nodes", "2", "--num_gpus", "2", "t.py"}).run,
            (Words{"--hostfile=h", "--nodes=0-1", "--slots=0,1", "--exit-code=worker", "--", "t.py",
                   "--local_rank=${local_rank}"}));
}

TEST(DeepspeedWords, TheMachinesOwnHostfileIsTakenWhereNoneIsNamed) {
  const auto with = [](const Words& words, bool placed) {
    return read_launch(words, {.placed_by_scheduler = placed, .default_hostfile = "/job/hostfile"});
  };
  EXPECT_EQ(with({"deepspeed", "t.py"}, false)->run.front(), "--hostfile=/job/hostfile");
  EXPECT_EQ(with({"deepspeed", "--hostfile=h", "t.py"}, false)->run.front(), "--hostfile=h");
  EXPECT_EQ(with({"deepspeed", "t.py"}, true)->run.front(), "--slots=gpu");
}

TEST(DeepspeedWords, UnderASchedulerTheHostfileGoes) {
  const Launch launch =
      read({"--hostfile=h", "-e", "a:0", "--master_port=1", "--no_python", "prog", "$x"}, true);
  EXPECT_EQ(launch.run, (Words{"--slots=gpu", "--exit-code=worker", "--no-python", "--", "prog",
                               "--local_rank=${local_rank}", "$$x"}));
  EXPECT_EQ(launch.nodes.exclude, "a:0");
  EXPECT_EQ(launch.notes,
            (Words{"--master_port, --hostfile, --exclude dropped: the scheduler says which nodes "
                   "there are, and Lockstep's agents find each other"}));
  EXPECT_EQ(read({"--num_nodes=4", "--num_gpus=1", "t.py"}, true).nodes.count, "4");
}

TEST(DeepspeedWords, ElasticTrainingIsOurs) {
  const Launch launch = read({"--hostfile=h", "--elastic_training", "--master_addr=a",
                              "--max_elastic_nodes=4", "t.py", "-x"});
  EXPECT_EQ(launch.run, (Words{"--hostfile=h", "--max-restarts=100", "--nnodes=1:4",
                               "--exit-code=worker", "--", "t.py", "-x"}));
}

TEST(DeepspeedWords, LogsOfEachRankAreKept) {
  const Launch launch = read({"--enable_each_rank_log", "logs", "--num_gpus=1", "t.py"});
  EXPECT_EQ(launch.run[2], "--redirects=3");
  EXPECT_EQ(launch.run[3], "--log-dir=logs");
}

TEST(DeepspeedWords, WhatCannotBeIsRefused) {
  EXPECT_EQ(error({"-i", "a", "-e", "b", "t.py"}),
            "deepspeed: --include and --exclude are both given");
  EXPECT_EQ(error({"-i", "a", "--num_gpus=1", "t.py"}),
            "deepspeed: --num_nodes and --num_gpus cannot be given with --include or --exclude");
  EXPECT_EQ(error({"--num_gpus=x", "t.py"}),
            "deepspeed: --num_gpus x must be a number from 0 to 4096");
  EXPECT_EQ(error({"--num_nodes=2", "t.py"}), "deepspeed: --num_nodes 2 without a hostfile");
  EXPECT_EQ(error({"--include=a:1", "t.py"}), "deepspeed: --include a:1 without a hostfile");
  EXPECT_EQ(error({"-i", "localhost:0@other:1", "t.py"}),
            "deepspeed: --include localhost:0@other:1 without a hostfile");
  EXPECT_EQ(error({"-i", "localhost:x", "t.py"}),
            "deepspeed: --include localhost:x: 'x' must be a slot");
  EXPECT_EQ(error({"--exclude=localhost:1", "t.py"}),
            "deepspeed: --exclude localhost:1 without a hostfile");
  EXPECT_EQ(error({"--autotuning=run", "t.py"}), "deepspeed: --autotuning starts many jobs itself");
  EXPECT_EQ(error({"--no_python", "--module", "t"}),
            "deepspeed: --no_python and --module are both given");
  EXPECT_EQ(error({"--no_ssh", "--hostfile=h", "--node_rank=0", "t.py"}),
            "deepspeed: --no_ssh is for one start on each host");
}

}  // namespace
}  // namespace lockstep::launchers
