#include "cloud/machine_name.h"

#include <gtest/gtest.h>

namespace lockstep::cloud {
namespace {

TEST(MachineName, ComesBackAsItWas) {
  LaunchSpec spec;
  spec.intent = "abcdefghij0123456789";
  spec.owner = "0123456789abcdef";
  spec.attempt = 999;
  spec.node = 127;
  Machine machine{.id = "i", .name = name_of(spec, 1'800'000'000'123).text()};
  EXPECT_LE(machine.name.size(), 64U) << machine.name;
  ASSERT_TRUE(read_name(machine));
  EXPECT_EQ(machine.intent, spec.intent);
  EXPECT_EQ(machine.owner, spec.owner);
  EXPECT_EQ(machine.node, 127);
  EXPECT_EQ(machine.launched_ms, 1'800'000'000'123);
  EXPECT_EQ(parse_machine_name(machine.name)->attempt, 999);
  EXPECT_EQ(machine.token, machine.name);
}

TEST(MachineName, OfOthersIsNotOurs) {
  for (const char* other : {"", "ls", "ls-a-b-1-0", "ls-a-b-1-0-x", "ls-a-b-1-0-1-1", "ls--b-1-0-1",
                            "ls-A-b-1-0-1", "ls-a-b--1-0-1", "ls-a-b-1-9999999999-1",
                            "ls-a-b-1-0-ffffffffffffffff", "is-a-b-1-0-1", "ls-a-b-1-0-1 "})
    EXPECT_FALSE(parse_machine_name(other)) << other;
}

TEST(MachineName, AQuestionForOursIsNarrowed) {
  const Machine machine{.id = "i", .region = "r", .intent = "a", .owner = "o"};
  EXPECT_TRUE(asked_for({}, machine));
  EXPECT_TRUE(asked_for({.regions = {"q", "r"}, .intent = "a", .owner = "o"}, machine));
  EXPECT_FALSE(asked_for({.regions = {"q"}}, machine));
  EXPECT_FALSE(asked_for({.regions = {}, .intent = "b"}, machine));
  EXPECT_FALSE(asked_for({.regions = {}, .intent = {}, .owner = "p"}, machine));
  EXPECT_FALSE(asked_for({}, Machine{.id = "i"}));
}

}  // namespace
}  // namespace lockstep::cloud
