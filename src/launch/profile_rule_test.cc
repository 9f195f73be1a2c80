#include "launch/launch_testing.h"

#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

LaunchConfig profiled(const std::map<std::string, std::string>& environment, bool wanted = true) {
  RawOptions raw;
  raw.script = "T";
  raw.profile = wanted;
  Machine machine;
  for (const auto& [name, value] : environment)
    machine.env[name] = value;
  return make_launch_config(raw, machine.facts()).value();
}

std::string names(const LaunchConfig& config) {
  std::string text;
  for (const auto& [name, value] : config.profile.variables)
    text.append(name).append("=").append(value).append(" ");
  return text;
}

TEST(ProfileRule, OnlyWhatTheUserWantsIsSet) {
  EXPECT_FALSE(profiled({}, false).profile.wanted);
  EXPECT_EQ(names(profiled({}, false)), "");
  EXPECT_EQ(names(profiled({})),
            "KINETO_USE_DAEMON=1 KINETO_IPC_SOCKET_DIR= KINETO_ONDEMAND_TRACE_DIR=traces ");
  EXPECT_EQ(names(profiled({{"KINETO_ONDEMAND_TRACE_DIR", "/tmp"}})),
            "KINETO_USE_DAEMON=1 KINETO_IPC_SOCKET_DIR= ");
}

TEST(ProfileRule, AVariableStandsForTheOption) {
  const LaunchConfig config = profiled({{"LOCKSTEP_PROFILE", "1"}}, false);
  EXPECT_TRUE(config.profile.wanted);
  EXPECT_EQ(config.origins.at("profile").name, "LOCKSTEP_PROFILE");
  EXPECT_FALSE(profiled({{"LOCKSTEP_PROFILE", "0"}}, false).profile.wanted);
}

TEST(ProfileRule, ASlurmJobHasAPlaceForTraces) {
  EXPECT_EQ(profiled({}).profile.place, "");
  EXPECT_EQ(profiled({{"LOCKSTEP_PROFILE_PLACE", "/shared/job"}}).profile.place, "/shared/job");
}

TEST(ProfileRule, AUsersOwnDaemonIsLeftAlone) {
  for (const char* name : {"KINETO_USE_DAEMON", "KINETO_IPC_SOCKET_DIR"}) {
    const LaunchConfig config = profiled({{name, "1"}});
    EXPECT_FALSE(config.profile.wanted);
    EXPECT_EQ(names(config), "");
    ASSERT_EQ(config.warnings.size(), 1U);
    EXPECT_EQ(config.warnings[0], std::string("--profile has no effect: ") + name + " is set");
  }
}

}  // namespace
}  // namespace lockstep::launch
