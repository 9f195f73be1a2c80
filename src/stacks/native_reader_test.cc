#include "stacks/native_reader.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

namespace lockstep::stacks {
namespace {

using Clock = std::chrono::steady_clock;

NativeQuestion question(bool all = true) {
  return {.all = all, .end = Clock::now() + std::chrono::seconds(60)};
}

// A child of this test that reads from a pipe to which nothing is written.
class Reading {
 public:
  Reading() {
    if (pipe(ends_) != 0) abort();
    pid_ = fork();
    char byte = 0;
    while (pid_ == 0)
      (void)!read(ends_[0], &byte, 1);
  }
  ~Reading() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(ends_[0]);
    close(ends_[1]);
  }
  pid_t pid() const { return pid_; }

 private:
  int ends_[2] = {-1, -1};
  pid_t pid_ = 0;
};

TEST(NativeReader, ShowsTheCallThatAThreadWaitsIn) {
  const Reading child;
  NativeReader reader;
  NativeThreads read;
  while (read.threads.empty() || read.threads[0].call != "read") {
    auto again = reader.read(child.pid(), question());
    ASSERT_TRUE(again) << again.error().sentence;
    read = std::move(*again);
  }
  ASSERT_EQ(read.threads.size(), 1U);
  const NativeThread& main = read.threads[0];
  EXPECT_EQ(main.tid, child.pid());
  EXPECT_EQ(main.name, "stacks_test");
  EXPECT_EQ(main.state, 'S');
  EXPECT_FALSE(main.runs);
  EXPECT_NE(main.at.find("+0x"), std::string::npos) << main.at;
  EXPECT_LE(main.callers.size(), kMostCallers);
}

TEST(NativeReader, WithoutMemoryShowsOnlyWhatTheKernelTells) {
  const Reading child;
  const auto read = NativeReader().read(
      child.pid(), {.memory = false, .end = Clock::now() + std::chrono::seconds(60)});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->threads[0].at, "");
  EXPECT_TRUE(read->threads[0].callers.empty());
}

TEST(NativeReader, LeavesOutThreadsThatComeTooLate) {
  const auto read = NativeReader().read(getpid(), {.end = Clock::now()});
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->threads.empty());
  EXPECT_GE(read->left_out, 1U);
}

TEST(NativeReader, KnowsAProcessThatIsGone) {
  pid_t gone = 0;
  {
    const Reading child;
    gone = child.pid();
  }
  const auto read = NativeReader().read(gone, question());
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, Unreadable::gone);
}

}  // namespace
}  // namespace lockstep::stacks
