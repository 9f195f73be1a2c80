#include "hosts/hosts_file.h"

#include <gtest/gtest.h>

namespace lockstep::hosts {
namespace {

TEST(HostsFile, AHostfileIsRead) {
  const auto hosts = parse_hosts_file(
      "# our machines\n\nworker-0 slots=8\nubuntu@10.0.0.5:2222\tslots=4  # the old "
      "one\r\nalias\n");
  ASSERT_TRUE(hosts) << hosts.error().message;
  ASSERT_EQ(hosts->size(), 3U);
  EXPECT_EQ((*hosts)[0].target.host, "worker-0");
  EXPECT_EQ((*hosts)[0].slots, 8);
  EXPECT_EQ((*hosts)[1].target.user, "ubuntu");
  EXPECT_EQ((*hosts)[1].target.port, 2222);
  EXPECT_EQ((*hosts)[1].slots, 4);
  EXPECT_FALSE((*hosts)[2].slots);
}

TEST(HostsFile, WhatMakesNoSenseIsNamedWithItsLine) {
  const auto error = [](std::string_view text) { return parse_hosts_file(text).error().message; };
  EXPECT_EQ(error("a\n-oProxyCommand=x\n"),
            "line 2: '-oProxyCommand=x' is not a host: its name is not valid");
  EXPECT_EQ(error("a slots=0"), "line 1: 'slots=0' after the host must be slots=N");
  EXPECT_EQ(error("a b"), "line 1: 'b' after the host must be slots=N");
  EXPECT_EQ(error("\n# nothing\n"), "the file names no host");
}

}  // namespace
}  // namespace lockstep::hosts
