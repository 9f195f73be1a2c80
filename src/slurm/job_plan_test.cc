#include "slurm/job_plan.h"

#include "slurm/batch_script.h"
#include "slurm/sbatch_file.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

JobPlan planned(const std::vector<std::string>& words, int spares = 0) {
  auto settings = read_settings(words);
  EXPECT_TRUE(settings);
  auto plan = plan_job(
      {.settings = settings->settings, .spares = spares, .folder = "/work", .name = "train.py"});
  EXPECT_TRUE(plan) << plan.error().message;
  return plan.value_or(JobPlan());
}

std::string value(const JobPlan& plan, std::string_view name) {
  const Setting* setting = find_setting(plan.settings, name);
  return setting == nullptr ? "(none)" : setting->value;
}

std::string refused(const std::vector<std::string>& words, int spares = 0) {
  const auto plan = plan_job({.settings = read_settings(words)->settings,
                              .spares = spares,
                              .folder = "/work",
                              .name = "x"});
  return plan ? "planned" : plan.error().message;
}

TEST(JobPlan, TasksAreRanksOfOneTask) {
  const JobPlan plan = planned({"-N2", "--ntasks-per-node=4", "-c3"});
  EXPECT_EQ(plan.workers, 4);
  EXPECT_EQ(value(plan, "ntasks-per-node"), "1");
  EXPECT_EQ(value(plan, "cpus-per-task"), "12");
  EXPECT_EQ(planned({"-N2", "-n8"}).workers, 4);
  EXPECT_EQ(value(planned({"-N2", "-n8"}), "ntasks"), "(none)");
  EXPECT_EQ(refused({"-N2", "-n7"}), "--ntasks=7 must be a multiple of the number of nodes");
}

TEST(JobPlan, SparesAreNodesOnTop) {
  const JobPlan plan = planned({"--nodes=2"}, 1);
  EXPECT_EQ(plan.nodes, 2);
  EXPECT_EQ(value(plan, "nodes"), "3");
  EXPECT_EQ(refused({"--nodes=2-4"}, 1), "--spare needs a fixed number of nodes");
  EXPECT_FALSE(planned({"--nodes=2-4"}).nodes);
  EXPECT_EQ(refused({"--nodes=x"}), "--nodes=x must be a number of nodes");
}

TEST(JobPlan, GpusAreCountedByNode) {
  EXPECT_EQ(planned({"--gpus-per-node=8"}).workers, 8);
  EXPECT_EQ(planned({"--gpus-per-node=a100:4"}).workers, 4);
  EXPECT_EQ(planned({"--gres=gpu:h100:2,nvme:1"}).workers, 2);
  EXPECT_EQ(planned({"--gres=gpu"}).workers, 1);
  const JobPlan shared = planned({"-N2", "--gpus=a100:16"}, 1);
  EXPECT_EQ(value(shared, "gpus-per-node"), "a100:8");
  EXPECT_EQ(value(shared, "gpus"), "(none)");
  EXPECT_EQ(shared.workers, 8);
  const JobPlan by_task = planned({"-N2", "--ntasks-per-node=4", "--gpus-per-task=2"});
  EXPECT_EQ(value(by_task, "gpus-per-node"), "8");
  EXPECT_EQ(by_task.workers, 4);
  EXPECT_EQ(by_task.notes.size(), 2U);
  EXPECT_EQ(refused({"-N2", "--gpus=3"}), "--gpus=3 can't be shared among the nodes");
}

TEST(JobPlan, GpusInEverySpellingOfSlurms) {
  EXPECT_EQ(planned({"--gres=gres/gpu:2"}).workers, 2);
  EXPECT_EQ(planned({"--gres=gpu=2"}).workers, 2);
  EXPECT_EQ(planned({"--gpus-per-node=a100=4"}).workers, 4);
  const JobPlan by_task = planned({"--tres-per-task=cpu:3,gres/gpu:a100=1", "--ntasks-per-node=2"});
  EXPECT_EQ(value(by_task, "gpus-per-node"), "a100:2");
  EXPECT_EQ(value(by_task, "cpus-per-task"), "6");
  EXPECT_EQ(value(by_task, "tres-per-task"), "(none)");
  EXPECT_EQ(by_task.workers, 2);
  EXPECT_EQ(refused({"--tres-per-task=license/a:1"}),
            "--tres-per-task: license/a:1 can't be counted by task: the one task of a node is the "
            "agent of all its ranks");
  EXPECT_EQ(refused({"--tres-per-task=cpu=1", "-c2"}),
            "--tres-per-task and --cpus-per-task say the same");
}

// Slurm 26.05 refuses --gpus-per-node beside GPUs in --gres.
TEST(JobPlan, GpusThatAreCountedTwiceAreCountedByNode) {
  const JobPlan gres = planned({"--gres=gpu:4,nvme:1", "--gpus-per-task=2"});
  EXPECT_EQ(value(gres, "gres"), "gpu:4,nvme:1");
  EXPECT_EQ(value(gres, "gpus-per-node"), "(none)");
  EXPECT_EQ(value(gres, "gpus-per-task"), "(none)");
  EXPECT_EQ(gres.workers, 2);
  const JobPlan node = planned({"--gpus-per-node=8", "--gpus-per-task=2"});
  EXPECT_EQ(value(node, "gpus-per-node"), "8");
  EXPECT_EQ(node.workers, 4);
  EXPECT_EQ(planned({"--gpus-per-node=8", "--gpus-per-task=8"}).workers, 8);
  EXPECT_EQ(value(planned({"--gres=nvme:1", "--gpus-per-task=2"}), "gpus-per-node"), "2");
}

TEST(JobPlan, TasksOfAGpuAreRanks) {
  const JobPlan plan = planned({"-N2", "--ntasks-per-gpu=2", "--gpus-per-node=4", "-c3"});
  EXPECT_EQ(plan.workers, 8);
  EXPECT_EQ(value(plan, "ntasks-per-gpu"), "(none)");
  EXPECT_EQ(value(plan, "ntasks-per-node"), "1");
  EXPECT_EQ(value(plan, "cpus-per-task"), "24");
  EXPECT_EQ(planned({"-N2", "--ntasks-per-gpu=1", "--gpus=8"}).workers, 4);
  const JobPlan by_tasks = planned({"-N2", "--ntasks-per-gpu=2", "-n8"});
  EXPECT_EQ(by_tasks.workers, 4);
  EXPECT_EQ(value(by_tasks, "gpus-per-node"), "2");
  EXPECT_EQ(refused({"--ntasks-per-gpu=1"}), "--ntasks-per-gpu needs a number of GPUs");
  EXPECT_EQ(refused({"--ntasks-per-gpu=1", "--ntasks-per-node=2"}),
            "--ntasks-per-gpu does not go with --ntasks-per-node");
}

// Slurm refuses --cpus-per-task beside --cpus-per-gpu, and shows one GPU to the one task of a node.
TEST(JobPlan, NothingIsAddedThatSlurmRefuses) {
  const JobPlan plan = planned({"--ntasks-per-node=2", "--gpus-per-node=2", "--cpus-per-gpu=4"});
  EXPECT_EQ(value(plan, "cpus-per-task"), "(none)");
  EXPECT_FALSE(plan.cpus);
  const JobPlan bound = planned({"--gpus-per-node=2", "--gpu-bind=single:1"});
  EXPECT_EQ(value(bound, "gpu-bind"), "(none)");
  EXPECT_EQ(bound.notes.size(), 1U);
  EXPECT_EQ(value(planned({"--gpu-bind=none"}), "gpu-bind"), "none");
}

TEST(JobPlan, ALongJobIsToldBeforeItsLimit) {
  EXPECT_EQ(value(planned({"-t", "20:00:00"}), "signal"), "B:USR1@360");
  EXPECT_EQ(value(planned({"-t", "20"}), "signal"), "B:USR1@120");
  EXPECT_EQ(value(planned({"-t", "5"}), "signal"), "(none)");
  EXPECT_EQ(value(planned({"-t", "20:00:00", "--signal=USR2@90"}), "signal"), "USR2@90");
}

JobWish chained(const std::vector<std::string>& words, int most) {
  return {.settings = read_settings(words)->settings,
          .folder = "/work",
          .name = "train.py",
          .chain = most};
}

TEST(JobPlan, AChainIsToldBeforeItsLimitHoweverShort) {
  const auto plan = plan_job(chained({"-t", "5", "-N2"}, 3));
  ASSERT_TRUE(plan);
  EXPECT_EQ(value(*plan, "signal"), "B:USR1@90");
  EXPECT_EQ(value(*plan, "requeue"), "");
  EXPECT_TRUE(plan->requeue);
  const std::string text = batch_script(
      *plan, {.version = "1", .binary = "/b", .folder = "/f", .command = "x", .run = {"train.py"}});
  EXPECT_NE(text.find("# At the time limit the job is queued again, or a new job continues, "
                      "3 times at most.\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(" --requeue --chain 3 --lead 90 -- "), std::string::npos) << text;
  EXPECT_EQ(value(*plan_job(chained({"-t", "1"}, 0)), "signal"), "B:USR1@30");
  const auto own = plan_job(chained({"-t", "1:00:00", "--no-requeue", "--signal=USR2@90"}, 0));
  EXPECT_EQ(value(*own, "requeue"), "(none)");
  EXPECT_EQ(value(*own, "signal"), "USR2@90");
  EXPECT_FALSE(plan_job(chained({"-N2"}, 0)));
  EXPECT_FALSE(plan_job(chained({"-t", "UNLIMITED"}, 0)));
}

TEST(JobPlan, TheOutputIsWhereSbatchPutsIt) {
  EXPECT_EQ(planned({}).output, "/work/slurm-%j.out");
  EXPECT_EQ(planned({"-o", "logs/%x.out", "-D", "/data"}).output, "/data/logs/%x.out");
  EXPECT_EQ(planned({"-o", "/tmp/x"}).output, "/tmp/x");
  EXPECT_EQ(expand_output("/a/%x-%4j-%u%%.out", {"17", "job", "me"}), "/a/job-0017-me%.out");
  EXPECT_FALSE(expand_output("/a/%N.out", {"17", "job", "me"}));
}

// Text behind a line break would run as commands of the script.
TEST(JobPlan, ALineBreakInAnOptionIsRefused) {
  EXPECT_EQ(refused({"--comment=a\nrm -rf x"}),
            "--comment: the value has a line break: a\\x0arm -rf x");
  EXPECT_EQ(refused({"--chdir=/a\nb"}), "--chdir: the value has a line break: /a\\x0ab");
  const auto named = plan_job({.settings = {}, .folder = "/work", .name = "a\nrm x"});
  EXPECT_EQ(value(*named, "job-name"), "a\\x0arm x");
}

// Agents decide about lost nodes, and a requeued job appends to its output.
TEST(JobPlan, ALostNodeEndsNeitherTheJobNorItsOutput) {
  const JobPlan plan = planned({"-N2"});
  EXPECT_NE(find_setting(plan.settings, "no-kill"), nullptr);
  EXPECT_EQ(value(plan, "open-mode"), "append");
  EXPECT_EQ(value(planned({"--open-mode=truncate"}), "open-mode"), "truncate");
}

TEST(JobPlan, AFolderIsNoPattern) {
  const auto plan = plan_job({.settings = {}, .folder = "/a/50%j", .name = "x"});
  EXPECT_EQ(plan->output, "/a/50%%j/slurm-%j.out");
  EXPECT_EQ(expand_output(plan->output, {"17", "job", "me"}), "/a/50%j/slurm-17.out");
}

TEST(JobPlan, WhatIsNoOneJobIsRefused) {
  EXPECT_EQ(refused({"--array=1-3"}), "--array: an array is many jobs");
}

// sbatch takes a backslash as an escape inside quotes, too.
TEST(JobScript, ADirectiveHasTheWordAsItWasGiven) {
  for (const char* word : {"--comment=it's", "--comment=a\\b", "--comment=\"a\" #b $c", "--x=\\'",
                           "--job-name=plain", "--comment=a\\", "--comment='"}) {
    const auto read = directive_words(directive_quote(word));
    ASSERT_TRUE(read) << word << read.error().message;
    EXPECT_EQ(*read, std::vector<std::string>{word});
  }
}

// All users write to /tmp, so the name must be new in each run.
TEST(JobScript, ACarriedBinaryHasANameOfItsOwnInEachRun) {
  const std::string name = "\"/tmp/lockstep-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}-secret\"";
  const std::string text = batch_script(planned({"-N2"}), {.version = "1",
                                                           .binary = "/h/lockstep",
                                                           .carry = "secret",
                                                           .folder = "/h",
                                                           .command = {},
                                                           .run = {}});
  EXPECT_NE(text.find(" --carry " + name + " -- "), std::string::npos) << text;
  EXPECT_NE(text.find(" " + name + " \\\n  slurm-node "), std::string::npos) << text;
  EXPECT_NE(text.find(" --drop-binary "), std::string::npos) << text;
}

TEST(JobScript, QuotesWhatTheUserGave) {
  const JobPlan plan = planned({"-N2", "--comment=it's"}, 1);
  const std::string text = batch_script(plan, {.version = "1",
                                               .binary = "/h/lock step",
                                               .folder = "/h/jobs/a",
                                               .command = "train.py\nrm -rf /",
                                               .run = {"--nnodes=2", "--", "train.py", "a b"}});
  EXPECT_NE(text.find("\n#SBATCH --nodes=3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# Written by lockstep 1 for: train.py\\x0arm -rf /\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("# 2 nodes train; 1 waits for one that fails.\n"), std::string::npos) << text;
  EXPECT_NE(text.find("lockstep='/h/lock step'\n"), std::string::npos) << text;
  EXPECT_NE(text.find("srun --nodes=3 --ntasks=3 --ntasks-per-node=1 "), std::string::npos) << text;
  EXPECT_NE(text.find("  --nnodes=2 -- train.py 'a b'\n"), std::string::npos) << text;
  const auto read = plan.settings;
  EXPECT_NE(text.find("\n#SBATCH '--comment=it\\'s'\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep::slurm
