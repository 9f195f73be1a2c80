#include "rent/silent_port.h"

#include <gtest/gtest.h>

namespace lockstep::rent {
namespace {

TEST(SilentMachines, ASecondOneInARowEndsTheAttempt) {
  SilentMachines machines;
  EXPECT_FALSE(machines.note(true));
  EXPECT_FALSE(machines.note(false));
  EXPECT_FALSE(machines.note(true));
  EXPECT_TRUE(machines.note(true));
}

TEST(SilentPort, WithoutAKnownServerNobodyIsAsked) {
  io::Loop loop;
  SilentPort port(loop, "");
  const std::string words =
      "no SSH server has answered at 192.0.2.1 port 22 for 60 s (it does not answer); the machine "
      "may still be booting, or a firewall here blocks outgoing port 22";
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(port.words("192.0.2.1", 22, std::chrono::seconds(60), "it does not answer"), words);
}

}  // namespace
}  // namespace lockstep::rent
