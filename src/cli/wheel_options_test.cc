#include "cli/wheel_options.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using Words = std::vector<std::string>;

tl::expected<WheelWords, ParseFailure> read(const Words& words) {
  return read_wheel_words(words, [](std::string_view) { return std::nullopt; });
}

// Returns the options for sbatch, as sbatch takes them.
Words for_sbatch(const WheelWords& read) {
  Words words;
  for (const slurm::Setting& each : read.sbatch)
    words.push_back(slurm::word_of(each));
  return words;
}

TEST(WheelOptions, SbatchGetsItsOptionsWithTheirValues) {
  const auto words =
      read({"./tiny", "--slurm", "-p", "gpu", "--exclusive", "-t5", "--gpus=1", "-o", "dist"});
  ASSERT_TRUE(words) << words.error().error.message;
  EXPECT_EQ(for_sbatch(*words), (Words{"--partition=gpu", "--exclusive", "--time=5", "--gpus=1"}));
  EXPECT_EQ(words->own.text("out"), "dist");
  EXPECT_EQ(words->own.names, Words{"./tiny"});
}

TEST(WheelOptions, AnOptionOfOursBehindOneOfSbatchStaysOurs) {
  for (const Words& ours : {Words{"--out=dist"}, Words{"--out", "dist"}, Words{"-odist"}}) {
    Words all = {"./tiny", "--slurm", "--exclusive"};
    all.insert(all.end(), ours.begin(), ours.end());
    const auto words = read(all);
    ASSERT_TRUE(words) << words.error().error.message;
    EXPECT_EQ(for_sbatch(*words), Words{"--exclusive"}) << ours[0];
    EXPECT_EQ(words->own.text("out"), "dist") << ours[0];
  }
}

TEST(WheelOptions, AnUnknownOptionIsNamed) {
  for (const Words& words : {Words{"./tiny", "--slurm", "--nodez", "2"},
                             Words{"./tiny", "--slurm", "--exclusive", "--nodez=2"}}) {
    const auto refused = read(words);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().error.message.find("nodez"), std::string::npos);
  }
  EXPECT_FALSE(read({"./tiny", "-p", "gpu"})) << "sbatch's options need --slurm or --on";
}

}  // namespace
}  // namespace lockstep::cli
