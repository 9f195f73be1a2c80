#include "ssh/target.h"

#include <gtest/gtest.h>

namespace lockstep::ssh {
namespace {

TEST(Target, IsWrittenAsForSsh) {
  EXPECT_EQ(parse_target("gpu1")->host, "gpu1");
  EXPECT_FALSE(parse_target("gpu1")->user);
  const auto full = parse_target("ubuntu@10.0.0.5:2222").value();
  EXPECT_EQ(full.user, "ubuntu");
  EXPECT_EQ(full.host, "10.0.0.5");
  EXPECT_EQ(full.port, 2222);
  EXPECT_EQ(parse_target("ssh://ubuntu@10.0.0.5:2222").value(), full);
  EXPECT_EQ(parse_target("fe80::1%eth0")->host, "fe80::1%eth0");
  EXPECT_EQ(parse_target("u@[::1]:22")->host, "::1");
  EXPECT_EQ(parse_target("u@[::1]:22")->port, 22);
  EXPECT_EQ(parse_target("me@corp@jump")->user, "me@corp");
  EXPECT_EQ(target_text(full), "ubuntu@10.0.0.5");
}

TEST(Target, WhatCouldBeAnOptionOrACommandIsRefused) {
  for (const char* text : {"", "-oProxyCommand=x", "u@", "@h", "-u@h", "a b", "h:0", "h:65536",
                           "h:x", "h:", "[::1", "[::1]x", "h\n", "$(x)", "a;b"})
    EXPECT_FALSE(parse_target(text)) << text;
  EXPECT_EQ(parse_target("h:x").error().message, "'h:x' is not a host: the port is not 1 to 65535");
}

}  // namespace
}  // namespace lockstep::ssh
