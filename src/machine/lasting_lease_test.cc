#include "machine/lasting_lease.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace lockstep::machine {
namespace {

constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kWall = 1'800'000'000'000;

// An hour is left; the lease is held for ten minutes of it.
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

TEST(MachineIdentity, IsCloudInitsElseThatOfTheHardware) {
  const auto write = [](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    ASSERT_TRUE(io::write_file(path, text));
  };
  std::string root = ::testing::TempDir() + "machineXXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  EXPECT_EQ(machine_identity(root), "");
  write(root + "/etc/machine-id", "0123456789abcdef\n");
  EXPECT_EQ(machine_identity(root), "0123456789abcdef");
  write(root + "/sys/class/dmi/id/product_uuid", "ec2abcde-1234\n");
  EXPECT_EQ(machine_identity(root), "ec2abcde-1234") << "an image may have kept the other";
  write(root + "/var/lib/cloud/data/instance-id", "iid-datasource-none\n");
  EXPECT_EQ(machine_identity(root), "ec2abcde-1234") << "every machine without a source has it";
  write(root + "/var/lib/cloud/data/instance-id", "i-0123456789abcdef0\n");
  EXPECT_EQ(machine_identity(root), "i-0123456789abcdef0");
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace lockstep::machine
