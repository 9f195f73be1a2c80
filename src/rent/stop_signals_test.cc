#include "rent/stop_signals.h"

#include "base/error_testing.h"
#include "rent/fake_world_testing.h"
#include "rent/market.h"

#include <gtest/gtest.h>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>

namespace lockstep::rent {
namespace {

// Blocks SIGTERM, as every command that rents does.
class StopSignalsTest : public testing::FakeWorld {
 protected:
  StopSignalsTest() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~StopSignalsTest() override {
    (void)world->signals().take();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  static bool readable(int fd) {
    pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
    return poll(&one, 1, 0) == 1;
  }

 private:
  sigset_t before_{};
};

TEST_F(StopSignalsTest, ASignalIsTakenOnce) {
  StopSignals& signals = world->signals();
  EXPECT_TRUE(signals.check());
  EXPECT_FALSE(readable(signals.fd()));
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(readable(signals.fd()));
  const Status stopped = signals.check();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(code_of(stopped), Errc::canceled);
  EXPECT_EQ(stopped.error().sys, SIGTERM);
  EXPECT_EQ(signals.take(), 0);
}

TEST_F(StopSignalsTest, RequestsBesideTheMainOnesEndWhenTheyAreStoppedAndAtASignal) {
  auto side = SideWeb::open(world->signals());
  ASSERT_TRUE(side);
  EXPECT_TRUE(side->web().pause(std::chrono::milliseconds(1)));
  side->stop(true);
  EXPECT_EQ(code_of(side->web().pause(std::chrono::hours(1))), Errc::canceled);
  side->stop(false);
  EXPECT_TRUE(side->web().pause(std::chrono::milliseconds(1)));
  kill(getpid(), SIGTERM);
  EXPECT_EQ(code_of(side->web().pause(std::chrono::hours(1))), Errc::canceled);
}

TEST_F(StopSignalsTest, TheMarketIsNotShownToAUserWhoHasStopped) {
  kill(getpid(), SIGTERM);
  EXPECT_EQ(code_of(ask_market(*world, {}, true)), Errc::canceled);
  EXPECT_TRUE(ask_market(*world, {}, true));
}

TEST_F(StopSignalsTest, TheWorldOfAProcessIsMadeFromItsEnvironment) {
  auto real = OnDemand::open();
  ASSERT_TRUE(real);
  EXPECT_EQ((*real)->owner(), world->owner()) << "both have the journal of this folder";
  EXPECT_EQ((*real)->ground().state, folder + "/lockstep");
  EXPECT_GE((*real)->providers().all().size(), 4U);
  EXPECT_FALSE((*real)->ground().env("LOCKSTEP_NO_SUCH_VARIABLE"));
  EXPECT_TRUE((*real)->ground().env("XDG_STATE_HOME"));
}

}  // namespace
}  // namespace lockstep::rent
