#include "slurm/job_run.h"

#include "base/environment.h"
#include "io/fd.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>

namespace lockstep::slurm {
namespace {

// A job's folder, and programs that stand for Slurm's.
class JobRunTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lockstep_job_run_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    path_ = env_text("PATH");
    setenv("PATH", (root_ + ":" + path_).c_str(), 1);
    ASSERT_TRUE(io::write_file(root_ + "/next.json", "{}"));
  }
  void TearDown() override {
    setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(root_);
  }

  void put_tool(const std::string& name, const std::string& script) {
    const std::string path = root_ + "/" + name;
    ASSERT_TRUE(io::write_file(path, "#!/bin/sh\ncd " + root_ + "\n" + script + "\n"));
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }

  // Returns the stage of a chain that has ended near its time limit. Only a chain that goes on
  // submits another job.
  Stage stage_after_limit() {
    put_tool("sbatch", "touch submitted; echo 8");
    io::Loop loop;
    JobRun run(loop, root_);
    run.state() = {.job = "7", .requeue = true, .chain = 0};
    EXPECT_TRUE(run.conclude(time_limit_verdict(), true));
    EXPECT_EQ(std::filesystem::exists(root_ + "/submitted"), run.state().stage == Stage::requeued);
    return run.state().stage;
  }

  std::string root_;
  std::string path_;
};

// Who follows the job reads no further once the end is recorded.
TEST_F(JobRunTest, TheEndIsRecordedAfterItsLastLine) {
  put_tool("scontrol", "exit 1");
  io::Loop loop;
  JobRun run(loop, root_);
  run.state() = {.job = "7"};
  ASSERT_TRUE(run.keep());
  int calls = 0;
  run.before_end([&] {
    ++calls;
    EXPECT_EQ(run.folder().state()->stage, Stage::running);
    EXPECT_FALSE(run.state().cause.empty());
  });
  EXPECT_TRUE(run.conclude(Verdict{Cause::worker, 7, "rank 1 exited with 7", {}}, false));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(run.folder().state()->stage, Stage::ended);
}

// Slurm's SIGTERM to the canceled job kills the first scontrol as well.
TEST_F(JobRunTest, ACanceledChainDoesNotGoOnIfTheFirstQuestionIsKilled) {
  put_tool("scontrol",
           "[ $1 = requeue ] && exit 1\n"
           "mkdir asked 2>/dev/null && kill -TERM $$\n"
           "echo JobId=7 JobState=CANCELLED Reason=None Requeue=0 Restarts=0");
  EXPECT_EQ(stage_after_limit(), Stage::ended);
}

TEST_F(JobRunTest, AChainDoesNotGoOnIfItsRequeueIsKilledByACancel) {
  put_tool("scontrol",
           "[ $1 = requeue ] && mkdir canceled && kill -TERM $$\n"
           "[ -e canceled ] && state=CANCELLED || state=RUNNING\n"
           "echo JobId=7 JobState=$state Reason=None Requeue=1 Restarts=0");
  EXPECT_EQ(stage_after_limit(), Stage::ended);
}

TEST_F(JobRunTest, AChainGoesOnInANewJobIfSlurmRefusesTheRequeue) {
  put_tool("scontrol",
           "[ $1 = requeue ] && exit 1\n"
           "echo JobId=7 JobState=RUNNING Reason=None Requeue=1 Restarts=0");
  EXPECT_EQ(stage_after_limit(), Stage::requeued);
}

}  // namespace
}  // namespace lockstep::slurm
