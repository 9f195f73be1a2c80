#include "rent/boot_watch.h"

#include <gtest/gtest.h>

#include <poll.h>

#include <atomic>

namespace lockstep::rent {
namespace {

bool told_within(const BootWatch& watch, int ms) {
  pollfd one{.fd = watch.fd(), .events = POLLIN, .revents = 0};
  return poll(&one, 1, ms) == 1;
}

TEST(BootWatchTest, ALossIsToldOnceItIsSeen) {
  std::atomic<int> looks = 0;
  const auto watch = BootWatch::start([&](cloud::Web&) { return ++looks == 2; });
  ASSERT_TRUE(watch);
  EXPECT_FALSE(told_within(**watch, 0));
  EXPECT_TRUE(told_within(**watch, 20'000));
  EXPECT_EQ(looks, 2);
}

TEST(BootWatchTest, ItsEndDoesNotWaitForTheNextLook) {
  std::atomic<int> looks = 0;
  {
    ASSERT_TRUE(BootWatch::start([&](cloud::Web&) { return ++looks > 0; }));
  }
  EXPECT_EQ(looks, 0);
}

}  // namespace
}  // namespace lockstep::rent
