#include "launch/launch_testing.h"

#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

Result<LaunchConfig> made(const std::optional<std::string>& events,
                          const std::optional<std::string>& notify,
                          const std::optional<std::string>& program) {
  RawOptions raw;
  raw.script = "T";
  raw.events = events;
  raw.notify = notify;
  raw.notify_exec = program;
  return make_launch_config(raw, Machine().facts());
}

TEST(EventRule, ReadsWhoIsTold) {
  const auto none = made({}, {}, {});
  EXPECT_FALSE(none->events.file || none->events.notifies());
  const auto all = made("e.jsonl", " https://h/x?y ", "/bin/tell 'a b' c");
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->events.file, "e.jsonl");
  EXPECT_EQ(all->events.url, "https://h/x?y");
  EXPECT_FALSE(all->events.slack);
  EXPECT_EQ(all->events.program, (std::vector<std::string>{"/bin/tell", "a b", "c"}));
}

TEST(EventRule, KnowsSlack) {
  EXPECT_TRUE(made({}, "https://hooks.slack.com/services/T/B/X", {})->events.slack);
  const auto other = made({}, "slack+http://chat.example:8065/hooks/x", {});
  EXPECT_TRUE(other->events.slack);
  EXPECT_EQ(other->events.url, "http://chat.example:8065/hooks/x");
}

TEST(EventRule, RefusesWithoutShowingTheUrl) {
  EXPECT_NE(made("", {}, {}).error().message.find("--events needs a file"), std::string::npos);
  EXPECT_NE(made("-", {}, {}).error().message.find("must be a file, got -"), std::string::npos);
  for (const char* wrong : {"", "secret", "ftp://secret/", "slack+secret", "http://"}) {
    const auto refused = made({}, wrong, {});
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().message.find("secret"), std::string::npos);
    EXPECT_NE(refused.error().message.find("--notify"), std::string::npos);
  }
  for (const char* wrong : {"", "  ", "'a", "''"})
    EXPECT_FALSE(made({}, {}, wrong)) << wrong;
}

}  // namespace
}  // namespace lockstep::launch
