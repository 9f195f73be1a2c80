#include "proc/signals.h"

#include "proc/signal_watch.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace lockstep::proc {
namespace {

TEST(Signals, NamesRoundTrip) {
  for (int signal = 1; signal < 32; ++signal)
    EXPECT_EQ(signal_number(signal_name(signal)), signal);
  EXPECT_EQ(signal_name(SIGRTMIN + 2), "SIGRTMIN+2");
  EXPECT_EQ(signal_number("SIGRTMIN+2"), SIGRTMIN + 2);
  EXPECT_EQ(signal_number("term"), SIGTERM);
  EXPECT_EQ(signal_number(" 10 "), 10);
  EXPECT_EQ(signal_number("SIGBOGUS"), std::nullopt);
  EXPECT_EQ(signal_number("0"), std::nullopt);
}

TEST(Signals, FaultsAndJobControlStayWithTheKernel) {
  const sigset_t set = handled_signals();
  EXPECT_TRUE(sigismember(&set, SIGTERM));
  EXPECT_TRUE(sigismember(&set, SIGCHLD));
  EXPECT_TRUE(sigismember(&set, SIGPIPE));
  EXPECT_FALSE(sigismember(&set, SIGSEGV));
  EXPECT_FALSE(sigismember(&set, SIGTSTP));
}

TEST(SignalWatch, TellsWhatCameButNoBrokenPipeAndNoHangUpUnderNohup) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // dispositions and masks are the process's own
    block(handled_signals());
    signal(SIGHUP, SIG_IGN);
    io::Loop loop;
    std::vector<int> came;
    auto watch = SignalWatch::open(loop, [&](int number) { came.push_back(number); });
    for (const int untold : {SIGHUP, SIGPIPE})
      kill(getpid(), untold);
    kill(getpid(), SIGTERM);
    while (came.empty() || came.back() != SIGTERM)
      loop.run_once();
    _exit(came == std::vector<int>{SIGTERM} ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lockstep::proc
