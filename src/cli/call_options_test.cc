// Words of `lockstep call`, and the refusals that need no host.
#include "cli/call_options.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

Result<CallOptions> parse(const std::vector<std::string>& words) {
  const auto parsed = parse_options(call_table(), words,
                                    [](std::string_view) { return std::optional<std::string>(); });
  if (!parsed) return tl::make_unexpected(parsed.error().error);
  return call_options(*parsed);
}

TEST(CallOptions, AHostAndAFunction) {
  const auto options = parse({"gpus", "pkg.train:main", "--args", "[1]", "--env", "A=b=c"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->where, "gpus");
  EXPECT_EQ(options->function, "pkg.train:main");
  EXPECT_EQ(options->args, "[1]");
  EXPECT_EQ(options->kwargs, "{}");
  EXPECT_EQ(options->variables.env, std::vector<std::string>{"A=b=c"});
  EXPECT_EQ(options->python, "python3");
}

TEST(CallOptions, WhatIsWrongIsNamed) {
  const auto refused = [](const std::vector<std::string>& words) {
    const auto options = parse(words);
    return options ? "" : options.error().message;
  };
  EXPECT_EQ(refused({}), "no host is named");
  EXPECT_EQ(refused({"gpus"}), "no function is named");
  EXPECT_EQ(refused({"gpus", "a:b", "c"}), "'c' is one word too many");
  EXPECT_EQ(refused({"gpus", "a:b", "--args", "{}"}), "--args must be a JSON list (got {})");
  EXPECT_EQ(refused({"gpus", "a:b", "--kwargs", "x=1"}),
            "--kwargs must be a JSON object (got x=1)");
  EXPECT_EQ(refused({"gpus", "a:b", "--answer-fd", "3"}), "'a:b' is one word too many");
  EXPECT_EQ(refused({"gpus", "--answer-fd", "3"}), "");
}

}  // namespace
}  // namespace lockstep::cli
