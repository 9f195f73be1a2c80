// Runs of this machine: programs that look like a guardian, started by the test.
#include "jobs/here/local_job.h"

#include "base/error_testing.h"
#include "io/fd.h"
#include "proc/signals.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

namespace lockstep::jobs::here {
namespace {

using Texts = std::vector<std::string>;

class LocalJobTest : public ::testing::Test {
 protected:
  LocalJobTest() {
    std::string name = "/tmp/lockstep-here-XXXXXX";
    folder_ = mkdtemp(name.data());
    // The kernel names a process after the file that it was started from.
    for (const char* program : {"lockstep-guard", "another"})
      std::filesystem::create_symlink("/bin/sh", folder_ + "/" + program);
    proc::block(proc::handled_signals());
  }
  ~LocalJobTest() override {
    for (const pid_t pid : started_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  pid_t start(const std::string& program = "lockstep-guard", const Texts& env = {},
              const std::string& word = "-c", const std::string& script = "train.py",
              const std::string& does = "while :; do sleep 0.02; done") {
    const std::string path = folder_ + "/" + program;
    Texts words = {path, word, does, script};
    std::vector<char*> argv;
    for (std::string& each : words)
      argv.push_back(each.data());
    argv.push_back(nullptr);
    Texts variables = env;
    std::vector<char*> environment;
    for (std::string& each : variables)
      environment.push_back(each.data());
    environment.push_back(nullptr);
    posix_spawnattr_t how{};
    posix_spawnattr_init(&how);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
    pid_t pid = 0;
    EXPECT_EQ(posix_spawn(&pid, path.c_str(), nullptr, &how, argv.data(), environment.data()), 0);
    posix_spawnattr_destroy(&how);
    started_.push_back(pid);
    // posix_spawn() returns before the kernel has given the process its new name and words.
    const std::string words_file = "/proc/" + std::to_string(pid) + "/cmdline";
    while (!io::read_file(words_file).value_or(path).starts_with(path))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return pid;
  }
  // Kills the run and reaps the process.
  void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    std::erase(started_, pid);
  }
  // Reaps the process in the background, as the shell of its user does.
  std::jthread reaper(pid_t pid) {
    std::erase(started_, pid);
    return std::jthread([pid] {
      for (int i = 0; i < 1000 && waitpid(pid, nullptr, WNOHANG) == 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      kill(pid, SIGKILL);
    });
  }
  LocalJob job(pid_t pid) const {
    auto known = find_local_job(local_id(pid));
    EXPECT_TRUE(known);
    return LocalJob(
        known.value_or(KnownJob{.id = local_id(pid), .name = "-", .place = {}, .command = {}}));
  }

  std::string folder_;
  std::vector<pid_t> started_;
};

TEST_F(LocalJobTest, ARunIsAJobWithANumberAndACommand) {
  const pid_t pid = start();
  const auto known = find_local_job(local_id(pid));
  ASSERT_TRUE(known);
  EXPECT_EQ(known->id, "pid-" + std::to_string(pid));
  EXPECT_EQ(known->place, "this machine");
  EXPECT_EQ(known->command, "-c 'while :; do sleep 0.02; done' train.py");
  EXPECT_TRUE(is_local_job(*known));
  const auto runs = local_runs();
  EXPECT_TRUE(
      std::any_of(runs.begin(), runs.end(), [&](const LocalRun& run) { return run.pid == pid; }));
  EXPECT_EQ(job(pid).status()->state, JobState::running);
  EXPECT_EQ(job(pid).status()->state, JobState::running);
  EXPECT_NE(job(pid).why()->text.find("lockstep wait pid-"), std::string::npos);
}

TEST_F(LocalJobTest, ARunIsFoundByItsScript) {
  LocalRun run;
  run.words = {"run", "--nproc-per-node", "2", "some/train.py", "--lr", "1"};
  EXPECT_TRUE(runs_script(run, "train.py"));
  for (const char* word : {"", "train", "some/train.py", "rain.py"})
    EXPECT_FALSE(runs_script(run, word)) << word;
  const std::string script = "train-" + std::to_string(getpid()) + ".py";
  const pid_t pid = start("lockstep-guard", {}, "-c", "some/" + script);
  const auto found = find_by_script(script);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->id, local_id(pid));
  const pid_t second = start("lockstep-guard", {}, "-c", script);
  const auto several = find_by_script(script);
  ASSERT_FALSE(several);
  EXPECT_NE(several.error().message.find(local_id(second)), std::string::npos);
  EXPECT_FALSE(*find_by_script("no-such-script.py"));
}

// A process that was forked and has not become another program has the name and the words of its
// parent.
TEST_F(LocalJobTest, AChildThatLooksLikeItsRunIsNoRun) {
  const std::string script = "train-" + std::to_string(getpid()) + ".py";
  const pid_t pid = start("lockstep-guard", {}, "-c", script, "(while :; do :; done) & echo; wait");
  const std::string children = fmt::format("/proc/{0}/task/{0}/children", pid);
  while (io::read_file(children).value_or("").empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const pid_t child = static_cast<pid_t>(std::stol(*io::read_file(children)));
  started_.push_back(child);  // the destructor ends the child, too
  EXPECT_TRUE(find_run(child));
  const auto found = find_by_script(script);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->id, local_id(pid));
}

// Its times are the kernel's: they must not change while it runs.
TEST_F(LocalJobTest, TheTimeOfItsStartStays) {
  const pid_t pid = start();
  const auto first = find_run(pid);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto second = find_run(pid);
  ASSERT_TRUE(first && second);
  EXPECT_LT(std::abs(first->started_ms - second->started_ms), 1000);
  EXPECT_GT(first->started_ms, 1'600'000'000'000);
}

TEST_F(LocalJobTest, OtherProcessesAreNoRuns) {
  EXPECT_FALSE(find_run(start("another")));
  EXPECT_FALSE(find_run(start("lockstep-guard", {"LOCKSTEP_JOB_ID=aaaa1111"})))
      << "a part of a job on hosts";
  EXPECT_FALSE(find_run(getpid()));
  for (const char* word : {"", "pid-", "pid-x", "pid-0", "pid--1", "pid-99999999999", "train"})
    EXPECT_FALSE(find_local_job(word)) << word;
}

TEST_F(LocalJobTest, ARunThatIsGoneIsLostAndLeavesNoRecord) {
  const pid_t pid = start();
  LocalJob gone = job(pid);
  end(pid);
  EXPECT_EQ(gone.status()->state, JobState::lost);
  EXPECT_NE(gone.why()->text.find("left no record"), std::string::npos);
  const auto refused = gone.cancel();
  EXPECT_FALSE(refused);
  EXPECT_FALSE(find_local_job(local_id(pid)));
  const auto followed = gone.follow({.print = false});
  ASSERT_TRUE(followed);
  EXPECT_FALSE(followed->left);
  EXPECT_EQ(followed->status.state, JobState::lost);
}

// The kernel gives numbers of processes again.
TEST_F(LocalJobTest, ALaterRunWithTheSameNumberIsAnother) {
  const pid_t pid = start();
  auto known = *find_local_job(local_id(pid));
  known.created_ms -= 60'000;
  LocalJob earlier(known);
  EXPECT_EQ(earlier.status()->state, JobState::lost);
  EXPECT_EQ(code_of(earlier.cancel()), Errc::not_found);
  EXPECT_FALSE(earlier.follow({.print = false})->left);
  EXPECT_EQ(kill(pid, 0), 0) << "nobody has touched it";
}

TEST_F(LocalJobTest, ACancelWaitsForTheEnd) {
  const pid_t pid = start();
  LocalJob running = job(pid);
  const auto reaping = reaper(pid);
  const auto status = running.cancel();
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->state, JobState::canceled);
  EXPECT_TRUE(status->by_person);
  EXPECT_FALSE(find_run(pid));
}

TEST_F(LocalJobTest, ASignalEndsTheWaitAndNotTheRun) {
  const pid_t pid = start();
  ASSERT_EQ(raise(SIGINT), 0);  // blocked, so it waits to be taken
  const auto followed = job(pid).follow({.print = false});
  ASSERT_TRUE(followed);
  EXPECT_TRUE(followed->left);
  EXPECT_EQ(followed->signal, SIGINT);
  EXPECT_TRUE(find_run(pid));
}

TEST_F(LocalJobTest, ItsOutputAndItsPartsAreNotKept) {
  const pid_t pid = start();
  const auto refused = job(pid).follow({});
  EXPECT_EQ(code_of(refused), Errc::invalid_input);
  EXPECT_NE(refused.error().hint.find("--log-dir"), std::string::npos);
  EXPECT_EQ(code_of(job(pid).resume({})), Errc::invalid_input);
}

}  // namespace
}  // namespace lockstep::jobs::here
