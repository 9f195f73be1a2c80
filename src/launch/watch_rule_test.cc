#include "launch/launch_testing.h"

#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

LaunchConfig with(const std::map<std::string, std::string>& env) {
  Machine machine;
  machine.env = env;
  return make(unchanged, machine).value();
}

TEST(Watch, NothingIsWatchedUnlessAVariableSaysSo) {
  for (const auto& config :
       {with({}), with({{"TORCHELASTIC_HEALTH_CHECK_PORT", " "},
                        {"TORCHELASTIC_ENABLE_FILE_TIMER", "0"},
                        {"TORCHELASTIC_TIMER_FILE", "/tmp/t"},
                        {"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", "0"}})}) {
    EXPECT_EQ(config.watch.health_port, std::nullopt);
    EXPECT_FALSE(config.watch.file_timer);
    EXPECT_EQ(config.watch.timer_file, std::nullopt);
    EXPECT_EQ(config.watch.stuck_limit, std::nullopt);
    EXPECT_TRUE(config.warnings.empty());
  }
}

TEST(Watch, VariablesAreReadAndNamedAsOrigins) {
  const auto config = with({{"TORCHELASTIC_HEALTH_CHECK_PORT", " 8080 "},
                            {"TORCHELASTIC_ENABLE_FILE_TIMER", "1"},
                            {"TORCHELASTIC_TIMER_FILE", "/tmp/t"},
                            {"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", "2.5"}});
  EXPECT_EQ(config.watch.health_port, 8080);
  EXPECT_TRUE(config.watch.file_timer);
  EXPECT_EQ(config.watch.timer_file, "/tmp/t");
  EXPECT_EQ(config.watch.stuck_limit->count(), 2.5);
  EXPECT_EQ(config.origins.at("TORCHELASTIC_TIMER_FILE").name, "TORCHELASTIC_TIMER_FILE");
  EXPECT_EQ(with({{"TORCHELASTIC_HEALTH_CHECK_PORT", "0"}}).watch.health_port, 0);  // any
}

TEST(Watch, ALauncherAboveMayWantTheFailure) {
  EXPECT_EQ(with({{"TORCHELASTIC_ERROR_FILE", ""}}).error_file_above, std::nullopt);
  EXPECT_EQ(with({{"TORCHELASTIC_ERROR_FILE", "/tmp/e"}}).error_file_above, "/tmp/e");
}

TEST(Watch, WhatCannotBeReadIsWarnedOf) {
  for (const char* bad : {"http", "65536", "-1", "80.5"}) {
    const auto config = with({{"TORCHELASTIC_HEALTH_CHECK_PORT", bad}});
    EXPECT_EQ(config.watch.health_port, std::nullopt) << bad;
    EXPECT_EQ(config.warnings, Words{"TORCHELASTIC_HEALTH_CHECK_PORT=" + std::string(bad) +
                                     " must be a port; no health check is served"});
  }
  const auto config = with({{"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", "1m"}});
  EXPECT_EQ(config.watch.stuck_limit, std::nullopt);
  EXPECT_EQ(config.warnings,
            Words{"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT=1m must be a number of "
                  "seconds; stuck workers are not watched"});
}

TEST(Watch, AnEndlessLimitDoesNotOverflowClocks) {
  const auto config = with({{"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", "1e300"}});
  EXPECT_EQ(config.watch.stuck_limit->count(), 365.0 * 24 * 3600);
}

}  // namespace
}  // namespace lockstep::launch
