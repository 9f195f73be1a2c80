#include "launchers/argument_split.h"

#include <gtest/gtest.h>

namespace lockstep::launchers {
namespace {

using Words = std::vector<std::string>;

constexpr ArgumentRow kRows[] = {
    {"num-gpus"},           {"num-nodes"},      {"accelerators", true, 0, "num-gpus"},
    {"module", false, 'm'}, {"tee", true, 't'}, {"help", false, 'h', {}, true},
};

SplitArguments split(const Words& words) {
  auto result = split_arguments("tool", kRows, words);
  EXPECT_TRUE(result) << result.error().message;
  return result.value_or(SplitArguments{});
}

std::string error(const Words& words) {
  const auto result = split_arguments("tool", kRows, words);
  return result ? "" : result.error().message;
}

TEST(ArgumentSplit, OptionsEndAtTheScript) {
  const auto read = split({"--num_gpus=4", "-m", "--num-n", "2", "train", "--tee", "--", "-x"});
  EXPECT_EQ(read.text("num-gpus"), "4");
  EXPECT_EQ(read.text("num-nodes"), "2");
  EXPECT_TRUE(read.has("module"));
  EXPECT_FALSE(read.has("tee"));
  EXPECT_EQ(read.rest, (Words{"train", "--tee", "--", "-x"}));
}

TEST(ArgumentSplit, LettersTakeWhatFollowsThem) {
  const auto read = split({"-mt9:1", "script"});
  EXPECT_TRUE(read.has("module"));
  EXPECT_EQ(read.text("tee"), "9:1");
  EXPECT_EQ(split({"-t=3", "s"}).text("tee"), "3");
  EXPECT_EQ(split({"-t", "3", "s"}).text("tee"), "3");
}

TEST(ArgumentSplit, OtherSpellingsAreTheSameOption) {
  EXPECT_EQ(split({"--num_gpus", "1", "--accelerators", "2", "s"}).text("num-gpus"), "2");
}

TEST(ArgumentSplit, DashesAreSwallowedOnceAsArgparseDoes) {
  EXPECT_EQ(split({"--", "s", "--", "a"}).rest, (Words{"s", "--", "a"}));
  EXPECT_EQ(split({"s", "--", "a", "--"}).rest, (Words{"s", "a", "--"}));
  EXPECT_EQ(split({"-5", "a"}).rest, (Words{"-5", "a"}));
  EXPECT_EQ(split({"-not an option", "a"}).rest, (Words{"-not an option", "a"}));
}

TEST(ArgumentSplit, WhatMakesNoSenseIsNamed) {
  EXPECT_EQ(error({"--num", "2"}), "tool: --num could mean --num-gpus, --num-nodes");
  EXPECT_EQ(error({"--foo", "s"}), "tool: there is no option --foo");
  EXPECT_EQ(error({"-mx", "s"}), "tool: there is no option -x");
  EXPECT_EQ(error({"--module=1", "s"}), "tool: --module takes no value, and '1' is given");
  EXPECT_EQ(error({"--tee"}), "tool: --tee needs a value");
  EXPECT_EQ(error({"--tee", "--", "s"}), "tool: --tee needs a value");
  EXPECT_EQ(error({"--tee", "-m", "s"}), "tool: --tee needs a value");
}

TEST(ArgumentSplit, NothingBehindHelpIsLookedAt) {
  EXPECT_TRUE(split({"--help", "--foo"}).has("help"));
}

}  // namespace
}  // namespace lockstep::launchers
