#include "proc/signals.h"

#include "proc/signal_watch.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <vector>

namespace lockstep::proc {
namespace {

// Runs the check in a child process: dispositions and masks are the process's own.
bool holds_in_child(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

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

TEST(Signals, AStopSignalIsTakenOnceAndOthersStayPending) {
  EXPECT_TRUE(holds_in_child([] {
    block(handled_signals());
    kill(getpid(), SIGUSR1);
    if (take_stop_signal({}) != 0) return false;
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
      kill(getpid(), number);
      if (!is_stop_signal(number) || take_stop_signal({}) != number) return false;
    }
    sigset_t pending;
    return take_stop_signal({}) == 0 && sigpending(&pending) == 0 &&
           sigismember(&pending, SIGUSR1) == 1;
  }));
  EXPECT_FALSE(is_stop_signal(SIGUSR1));
  EXPECT_FALSE(is_stop_signal(0));
}

TEST(Signals, AHangUpUnderNohupStopsNothing) {
  EXPECT_TRUE(holds_in_child([] {
    block(handled_signals());
    signal(SIGHUP, SIG_IGN);
    kill(getpid(), SIGHUP);
    return take_stop_signal({}) == 0;
  }));
}

TEST(Signals, WithoutAStopSignalTheWholeLimitPasses) {
  EXPECT_TRUE(holds_in_child([] {
    block(handled_signals());
    const auto began = std::chrono::steady_clock::now();
    const std::chrono::milliseconds limit(1010);  // more than a second: two parts of a timespec
    return take_stop_signal(limit) == 0 && std::chrono::steady_clock::now() - began >= limit;
  }));
}

TEST(SignalWatch, TellsWhatCameButNoBrokenPipeAndNoHangUpUnderNohup) {
  EXPECT_TRUE(holds_in_child([] {
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
    return came == std::vector<int>{SIGTERM};
  }));
}

}  // namespace
}  // namespace lockstep::proc
