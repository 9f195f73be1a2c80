#include "cluster/silent_port.h"

#include <gtest/gtest.h>

namespace lockstep::cluster {
namespace {

TEST(SilentMachines, ASecondOneInARowEndsTheAttempt) {
  SilentMachines machines;
  EXPECT_FALSE(machines.note(false));
  EXPECT_FALSE(machines.note(true));
  EXPECT_FALSE(machines.note(false));
  EXPECT_TRUE(machines.note(false));
}

TEST(SilentPort, WithoutAKnownServerNobodyIsAsked) {
  io::Loop loop;
  SilentPort port(loop, "");
  const std::string words =
      "nothing answers at 192.0.2.1 port 22 since 60 s; it may still boot, or a firewall here "
      "blocks "
      "outgoing port 22";
  EXPECT_EQ(port.words("192.0.2.1", 22, std::chrono::seconds(60)), words);
  EXPECT_EQ(port.words("192.0.2.1", 22, std::chrono::seconds(60)), words);
}

}  // namespace
}  // namespace lockstep::cluster
