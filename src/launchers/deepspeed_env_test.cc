#include "launchers/deepspeed_env.h"

#include <gtest/gtest.h>

namespace lockstep::launchers {
namespace {

using Variables = std::vector<std::string>;

TEST(DeepspeedEnv, LinesAreVariables) {
  const auto read = parse_deepspeed_env(
      "NCCL_DEBUG=INFO\n\n# a comment\n  export HF_HOME = /data/hf \r\nA=\"a "
      "b\"\nB='$x'\nC=\nD=a=\"b\"\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read,
            (Variables{"NCCL_DEBUG=INFO", "HF_HOME=/data/hf", "A=a b", "B=$x", "C=", "D=a=\"b\""}));
}

TEST(DeepspeedEnv, WhatIsNoVariableIsNamedWithItsLine) {
  const auto error = [](std::string_view text) {
    return parse_deepspeed_env(text).error().message;
  };
  EXPECT_EQ(error("A=1\nnothing"), "line 2: 'nothing' is not NAME=value");
  EXPECT_EQ(error("=1"), "line 1: '=1' is not NAME=value");
  EXPECT_EQ(error("1A=1"), "line 1: '1A=1' is not NAME=value");
  EXPECT_EQ(error("A;B=1"), "line 1: 'A;B=1' is not NAME=value");
}

TEST(DeepspeedEnv, SomeVariablesGoAlong) {
  EXPECT_TRUE(deepspeed_exports("NCCL_DEBUG"));
  EXPECT_TRUE(deepspeed_exports("PYTHONPATH"));
  EXPECT_TRUE(deepspeed_exports("UCX_TLS"));
  EXPECT_FALSE(deepspeed_exports("HF_TOKEN"));
  EXPECT_FALSE(deepspeed_exports("CUDA_VISIBLE_DEVICES"));
  EXPECT_FALSE(deepspeed_exports("PATH"));
}

}  // namespace
}  // namespace lockstep::launchers
