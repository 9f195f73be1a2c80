#include "rent/sshd_probe.h"

#include "io/loop.h"
#include "rent/fake_sshd_testing.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::rent {
namespace {

// Returns the error of a probe, or "" if an SSH server greeted.
std::string probed(const std::string& address, int port) {
  io::Loop loop;
  std::string why = "no answer";
  const SshdProbe probe(loop, address, port, [&](const Status& greeted) {
    why = greeted ? "" : greeted.error().message;
    loop.stop();
  });
  loop.run();
  return why;
}

TEST(SshdProbeTest, OnlyAnSshServerCounts) {
  const testing::Greeter sshd("SSH-2.0-OpenSSH_9.2\r\n");
  EXPECT_EQ(probed("127.0.0.1", sshd.port()), "");
  const testing::Greeter mail("220 mail ESMTP\r\n");
  EXPECT_EQ(probed("127.0.0.1", mail.port()), "the answer is not from an SSH server");
  const testing::Greeter closing("");
  EXPECT_EQ(probed("127.0.0.1", closing.port()), "the port closes connections at once");
}

TEST(SshdProbeTest, WithoutAServerTheErrorOfTheSystemIsTold) {
  EXPECT_EQ(probed("127.0.0.1", testing::closed_port()), "connection refused");
  EXPECT_EQ(probed("::1", testing::closed_port()), "connection refused");
  EXPECT_EQ(probed("gpus-0", 22), "gpus-0 is no address");
}

}  // namespace
}  // namespace lockstep::rent
