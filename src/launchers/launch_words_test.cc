#include "launchers/launch_words.h"

#include <gtest/gtest.h>

namespace lockstep::launchers {
namespace {

using Words = std::vector<std::string>;

Launch read(const Words& words, bool placed = false) {
  auto launch = read_launch(words, {.placed_by_scheduler = placed});
  EXPECT_TRUE(launch) << launch.error().message;
  return launch.value_or(Launch{});
}

TEST(LaunchWords, AScriptIsLockstepRunsOwn) {
  const Launch launch = read({"train.py", "--lr", "1"});
  EXPECT_EQ(launch.launcher, Launcher::none);
  EXPECT_EQ(launch.run, (Words{"train.py", "--lr", "1"}));
}

TEST(LaunchWords, LaunchersAreKnownByNameOrAbsolutePath) {
  EXPECT_EQ(launcher_of(Words{"torchrun"}), Launcher::torchrun);
  EXPECT_EQ(launcher_of(Words{"/opt/venv/bin/deepspeed"}), Launcher::deepspeed);
  EXPECT_EQ(launcher_of(Words{"accelerate", "launch"}), Launcher::accelerate);
  EXPECT_EQ(launcher_of(Words{"accelerate", "config"}), Launcher::none);
  EXPECT_EQ(launcher_of(Words{"python3.11"}), Launcher::python);
  // Files of the user's.
  EXPECT_EQ(launcher_of(Words{"./torchrun"}), Launcher::none);
  EXPECT_EQ(launcher_of(Words{"python.py"}), Launcher::none);
  EXPECT_EQ(launcher_of(Words{}), Launcher::none);
}

TEST(LaunchWords, TorchrunsOptionsStay) {
  const Launch launch = read({"torchrun", "--nnodes", "1:4", "--nproc_per_node=8", "-r", "9:1",
                              "-t9:1", "--no-python", "train", "-m", "--", "$HOME"});
  EXPECT_EQ(launch.launcher, Launcher::torchrun);
  EXPECT_EQ(launch.run, (Words{"--nnodes=1:4", "--nproc-per-node=8", "--redirects=9:1", "--tee=9:1",
                               "--no-python", "--", "train", "-m", "--", "$HOME"}));
  EXPECT_EQ(launch.nodes.count, "1:4");
  EXPECT_TRUE(launch.notes.empty());
}

TEST(LaunchWords, UnderASchedulerTorchrunsWordsOfNodesGo) {
  const Launch launch =
      read({"python", "-u", "-m", "torch.distributed.run", "--nnodes=2", "--node_rank", "1",
            "--master_addr=a", "--rdzv_backend", "c10d", "--nproc-per-node", "4", "train.py"},
           true);
  EXPECT_EQ(launch.run, (Words{"--nproc-per-node=4", "--", "train.py"}));
  EXPECT_EQ(launch.nodes.count, "2");
  ASSERT_EQ(launch.notes.size(), 1U);
  EXPECT_EQ(launch.notes[0],
            "--node-rank, --master-addr, --rdzv-backend dropped: the scheduler says which nodes "
            "there are, and Lockstep's agents find each other");
  EXPECT_TRUE(launch.env.empty());
}

TEST(LaunchWords, TheOldLaunchModuleGivesTheLocalRankAsAnArgument) {
  EXPECT_EQ(
      read({"python", "-m", "torch.distributed.launch", "--nproc_per_node=2", "t.py", "-x"}).run,
      (Words{"--nproc-per-node=2", "--", "t.py", "--local-rank=${local_rank}", "-x"}));
  EXPECT_EQ(read({"python", "-m", "torch.distributed.launch", "--use_env", "t.py", "-x"}).run,
            (Words{"--", "t.py", "-x"}));
}

TEST(LaunchWords, PlainPythonIsLockstepsOwnWay) {
  EXPECT_EQ(read({"python", "train.py", "a b", "$local_rank"}).run,
            (Words{"--", "train.py", "a b", "$$local_rank"}));
  EXPECT_EQ(read({"python3", "-u", "-m", "pkg.train", "-x"}).run,
            (Words{"--module", "--", "pkg.train", "-x"}));
  EXPECT_EQ(read({"python3", "-um", "pkg.train"}).run, (Words{"--module", "--", "pkg.train"}));
}

TEST(LaunchWords, ACertainPythonIsTaken) {
  const Launch launch = read({"/opt/venv/bin/python", "train.py"});
  EXPECT_EQ(launch.run, (Words{"--", "train.py"}));
  EXPECT_EQ(launch.env, (Words{"PYTHON_EXEC=/opt/venv/bin/python"}));
  EXPECT_EQ(read({"python3.11", "-m", "torch.distributed.run", "t.py"}).env,
            (Words{"PYTHON_EXEC=python3.11"}));
}

TEST(LaunchWords, PythonsOwnOptionsStayWithPython) {
  EXPECT_EQ(read({"python", "-O", "-X", "dev", "-Wignore", "train.py", "$x"}).run,
            (Words{"--no-python", "--", "python", "-u", "-O", "-X", "dev", "-Wignore", "train.py",
                   "$$x"}));
  EXPECT_EQ(read({"python", "-c", "print(1)"}).run,
            (Words{"--no-python", "--", "python", "-u", "-c", "print(1)"}));
  EXPECT_EQ(read({"python", "-O", "-m", "pkg", "a"}).run,
            (Words{"--no-python", "--", "python", "-u", "-O", "-m", "pkg", "a"}));
  // Python's options in front of a launcher are not for the workers.
  EXPECT_EQ(read({"python", "-O", "-m", "torch.distributed.run", "t.py"}).run,
            (Words{"--", "t.py"}));
}

TEST(LaunchWords, AccelerateIsReadByTheAccelerateThatIsInstalled) {
  for (const Words& start :
       {Words{"accelerate", "launch"}, Words{"accelerate-launch"},
        Words{"python", "-m", "accelerate.commands.launch"},
        Words{"python", "-m", "accelerate.commands.accelerate_cli", "launch"}}) {
    Words words = start;
    words.insert(words.end(), {"--multi_gpu", "t.py"});
    EXPECT_EQ(read(words).launcher, Launcher::accelerate);
    EXPECT_EQ(read(words).run, (Words{"--multi_gpu", "t.py"}));
  }
}

TEST(LaunchWords, ErrorsNameTheLauncher) {
  const auto failed = read_launch(Words{"torchrun", "--nproc", "2", "--foo", "t.py"}, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "torchrun: there is no option --foo");
}

}  // namespace
}  // namespace lockstep::launchers
