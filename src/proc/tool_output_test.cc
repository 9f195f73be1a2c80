#include "proc/tool_output.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <signal.h>

namespace lockstep::proc {
namespace {

std::vector<std::string> shell(const std::string& script) {
  return {"sh", "-c", script};
}

TEST(ToolOutput, BothStreamsAndTheEndAreToldApart) {
  const auto said = tool_output(shell("echo out; echo err >&2; exit 3"));
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->out, "out\n");
  EXPECT_EQ(said->err, "err\n");
  EXPECT_EQ(said->exit.code, 3);
  EXPECT_FALSE(said->late);
}

TEST(ToolOutput, TheProgramReadsNothingAndSeesOnlyTheGivenEnvironment) {
  const auto said = tool_output(shell("cat; echo $A$HOME"), {"A=b", "PATH=/bin:/usr/bin"});
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->out, "b\n");
}

TEST(ToolOutput, ManyErrorsAreReadAndCutSoThatNobodyHangs) {
  const auto said = tool_output(shell("head -c 1000000 /dev/zero >&2; echo end"));
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->out, "end\n");
  EXPECT_LE(said->err.size(), 96UL << 10);
}

TEST(ToolOutput, AProgramThatIsNotThereIsNamed) {
  const auto said = tool_output({"lockstep-no-such-program"});
  ASSERT_FALSE(said);
  EXPECT_EQ(code_of(said), Errc::not_found);
  EXPECT_NE(said.error().message.find("lockstep-no-such-program"), std::string::npos);
}

TEST(ToolOutput, OneThatDoesNotEndIsKilledInTime) {
  const auto said = tool_output(shell("exec sleep 1000"), own_environment(),
                                {.patience = std::chrono::milliseconds(50)});
  ASSERT_FALSE(said);
  EXPECT_EQ(code_of(said), Errc::timeout);
  EXPECT_EQ(said.error().message, "sh: no answer in 1 s");
}

TEST(ToolOutput, WhatCameBeforeTheTimeLimitMayBeKept) {
  const ToolLimits limits{.patience = std::chrono::milliseconds(500), .keep_late = true};
  const auto said = tool_output(shell("echo half; exec sleep 1000"), own_environment(), limits);
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->out, "half\n");
  EXPECT_EQ(said->exit.signal, SIGTERM);
  EXPECT_TRUE(said->late);
  const auto deaf =
      tool_output(shell("trap '' TERM; echo deaf; sleep 1000"), own_environment(), limits);
  ASSERT_TRUE(deaf) << deaf.error().message;
  EXPECT_EQ(deaf->out, "deaf\n");
  EXPECT_EQ(deaf->exit.signal, SIGKILL);
  const auto polite = tool_output(shell("trap 'echo bye; exit 0' TERM; sleep 1000 & wait"),
                                  own_environment(), limits);
  ASSERT_TRUE(polite) << polite.error().message;
  EXPECT_EQ(polite->out, "bye\n");
  EXPECT_TRUE(polite->late && polite->exit.ok());
}

TEST(ToolOutput, OneThatPrintsTooMuchIsKilled) {
  EXPECT_EQ(tool_output({"yes"}, own_environment(), {.output = 2 << 20}).error().message,
            "yes: printed more than 2 MiB");
}

}  // namespace
}  // namespace lockstep::proc
