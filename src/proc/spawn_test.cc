#include "proc/spawn.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::proc {
namespace {

Exit wait_for(Child& child) {
  pollfd watched{child.pidfd(), POLLIN, 0};
  EXPECT_EQ(poll(&watched, 1, 20000), 1);
  const auto end = child.reap();
  EXPECT_TRUE(end);
  return end.value_or(Exit{});
}

SpawnSpec shell(const std::string& script) {
  SpawnSpec spec;
  spec.executable = "/bin/sh";
  spec.argv = {"sh", "-c", script};
  spec.env = {"PATH=/usr/bin:/bin", "GREETING=hello"};
  return spec;
}

// Returns the script's output.
std::string output_of(SpawnSpec spec) {
  auto pipe = io::make_pipe();
  EXPECT_TRUE(pipe);
  spec.stdout_fd = pipe->write.get();
  auto child = spawn(spec);
  EXPECT_TRUE(child);
  pipe->write.reset();
  std::string out;
  char bytes[4096];
  ssize_t got = 0;
  while ((got = read(pipe->read.get(), bytes, sizeof bytes)) > 0)
    out.append(bytes, static_cast<std::size_t>(got));
  wait_for(*child);
  return out;
}

TEST(Spawn, ReportsExitCodesAndSignals) {
  auto coded = spawn(shell("exit 7"));
  ASSERT_TRUE(coded);
  EXPECT_EQ(wait_for(*coded).code, 7);
  auto killed = spawn(shell("kill -9 $$"));
  ASSERT_TRUE(killed);
  const Exit end = wait_for(*killed);
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_EQ(end.python_code(), -9);
  EXPECT_EQ(end.shell_code(), 137);
}

TEST(Spawn, ThreadsStartEachTheirOwn) {
  std::array<int, 4> wrong{};
  std::vector<std::thread> threads;
  threads.reserve(wrong.size());
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([thread, &wrong] {
      for (int i = 0; i < 100; ++i) {
        auto child = spawn(shell("exit " + std::to_string(thread + 1)));
        if (!child || wait_for(*child).code != thread + 1) ++wrong.at(thread);
      }
    });
  for (std::thread& each : threads)
    each.join();
  EXPECT_EQ(wrong, (std::array<int, 4>{}));
}

TEST(Spawn, GivesTheChildItsEnvironmentAndNothingElse) {
  EXPECT_EQ(output_of(shell("echo $GREETING; ls /proc/self/fd | wc -l")),
            "hello\n4\n");  // 0 1 2 and ls's own
}

TEST(Spawn, ChildLeadsItsSessionWithACleanMaskAndDispositions) {
  signal(SIGUSR1, SIG_IGN);
  sigset_t term;
  sigset_t before;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, &before);
  const std::string status = output_of(
      shell("grep -E '^Sig(Blk|Ign)' /proc/self/status; ps -o sid= -p $$ | tr -d ' '; echo $$"));
  sigprocmask(SIG_SETMASK, &before, nullptr);
  signal(SIGUSR1, SIG_DFL);
  EXPECT_NE(status.find("SigBlk:\t0000000000000000"), std::string::npos) << status;
  EXPECT_NE(status.find("SigIgn:\t0000000000000000"), std::string::npos) << status;
}

TEST(Spawn, BindsToCpus) {
  SpawnSpec spec = shell("grep Cpus_allowed_list /proc/self/status");
  spec.cpus = {0};
  EXPECT_EQ(output_of(spec), "Cpus_allowed_list:\t0\n");
}

TEST(Spawn, NamesTheStepThatFailed) {
  SpawnSpec spec = shell("");
  spec.executable = "/no/such/file";
  const auto missing = spawn(spec);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "run /no/such/file: No such file or directory");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child was left behind";
}

// Runs a copy of this test, whose file is then removed.
TEST(Spawn, AProgramThatWasReplacedStillStartsItself) {
  const auto own = own_executable();
  ASSERT_TRUE(own);
  SpawnSpec spec;
  if (getenv("REPLACED_PROGRAM") != nullptr) {
    ASSERT_EQ(unlink(own->c_str()), 0);
    spec.executable = *own_executable();
    ASSERT_EQ(spec.executable, *own + " (deleted)");
    spec.argv = {"test", "--gtest_list_tests"};
    auto again = spawn(spec);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_TRUE(wait_for(*again).ok());
    spec.executable = "/another (deleted)";
    EXPECT_FALSE(spawn(spec));
    return;
  }
  const std::string copy = testing::TempDir() + "replaced-" + std::to_string(getpid());
  std::filesystem::copy_file(*own, copy);
  spec.executable = copy;
  spec.argv = {"test", "--gtest_filter=Spawn.AProgramThatWasReplacedStillStartsItself"};
  spec.env = {"REPLACED_PROGRAM=1"};
  auto child = spawn(spec);
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_TRUE(wait_for(*child).ok());
  unlink(copy.c_str());
}

TEST(Spawn, FindExecutableIsExecvpsSearch) {
  EXPECT_EQ(*find_executable("sh", "/nowhere:/bin"), "/bin/sh");
  EXPECT_EQ(*find_executable("./x", "/bin"), "./x");
  EXPECT_EQ(code_of(find_executable("no-such-thing", "/bin")), Errc::not_found);
}

}  // namespace
}  // namespace lockstep::proc
