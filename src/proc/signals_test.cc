#include "proc/signals.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lockstep::proc
