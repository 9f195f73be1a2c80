#include "machine/lasting_lease.h"

#include <gtest/gtest.h>

namespace lockstep::machine {
namespace {

constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kWall = 1'800'000'000'000;

// An hour is left, ten minutes of which it is held.
LastingLease written() {
  KeptLease lease;
  lease.begin = 5 * kMinute;
  lease.end = 70 * kMinute;
  lease.hold_until = 20 * kMinute;
  lease.timer = 3;
  lease.home = "/home/ubuntu";
  return lasting_lease(lease, kWall, 10 * kMinute);
}

TEST(LastingLease, EndsWhenItWouldHaveEndedWithoutTheReboot) {
  const KeptLease lease = lease_after_boot(written(), kWall + 25 * kMinute, 500);
  EXPECT_EQ(lease.end, 500 + 35 * kMinute);
  EXPECT_EQ(lease.hold_until, 500);
  EXPECT_EQ(lease.touched, 500);
  EXPECT_EQ(lease.timer, 0);
  EXPECT_EQ(lease.home, "/home/ubuntu");
}

TEST(LastingLease, ThatWasOverMeanwhileEndsAtOnce) {
  EXPECT_EQ(lease_after_boot(written(), kWall + 3000 * kMinute, 500).end, 500);
}

TEST(LastingLease, GetsNoMoreThanAFirstBootFromAClockThatHasGoneBack) {
  EXPECT_EQ(lease_after_boot(written(), kWall - 1000, 500).end, 500 + 60 * kMinute);
  EXPECT_EQ(lease_after_boot(written(), kWall - 3000 * kMinute, 500).end, 500 + 20 * kMinute);
  LastingLease soon = written();
  soon.left_ms = 3 * kMinute;
  EXPECT_EQ(lease_after_boot(soon, 0, 500).end, 500 + 3 * kMinute);
}

TEST(LastingLease, IsTakenUpAfterCloudInitHasArmedItsTimer) {
  const std::string unit = resume_unit("/home/ubuntu/.cache/lockstep");
  EXPECT_NE(unit.find("ExecStart=\"/home/ubuntu/.cache/lockstep\" host-lease resume\n"),
            std::string::npos);
  EXPECT_NE(unit.find("cloud-init.service"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::machine
