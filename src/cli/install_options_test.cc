// Words of `lockstep install`, and the refusals that need no host.
#include "cli/install_options.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using Choice = setup::SetupRequest::Choice;

Result<InstallOptions> read(const std::vector<std::string>& words) {
  const auto parsed = parse_options(install_table(), words,
                                    [](std::string_view) { return std::optional<std::string>(); });
  if (!parsed) return Failure(parsed.error().error);
  return install_options(*parsed);
}

std::string refusal(const std::vector<std::string>& words) {
  const auto options = read(words);
  return options ? "taken" : options.error().message;
}

TEST(InstallOptions, PlaceAndSpecs) {
  const auto options = read({"gpus", "torch -U", "--nodes", "0", "pip:./"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->where, "gpus");
  EXPECT_EQ(options->specs, (std::vector<std::string>{"torch -U", "pip:./"}));
  EXPECT_EQ(options->chosen.choice, Choice::project);
}

TEST(InstallOptions, OneEnvironment) {
  EXPECT_EQ(read({"h", "x", "--venv", "v"})->chosen.place, "v");
  EXPECT_EQ(read({"h", "x", "--venv", "v"})->chosen.choice, Choice::venv);
  EXPECT_EQ(read({"h", "x", "--conda=c"})->chosen.place, "c");
  EXPECT_EQ(read({"h", "x", "--conda=c"})->chosen.choice, Choice::conda);
  EXPECT_EQ(read({"h", "x", "--system"})->chosen.choice, Choice::system);
  EXPECT_NE(refusal({"h", "x", "--system", "--conda", "c"}).find("more than one of"),
            std::string::npos);
  EXPECT_NE(refusal({"h", "x", "--venv="}).find("is empty"), std::string::npos);
}

TEST(InstallOptions, RefusesWhatNeedsNoHost) {
  EXPECT_EQ(refusal({}), "no host is named");
  EXPECT_EQ(refusal({"h"}), "no spec is given");
  EXPECT_NE(refusal({"h", "x", "npm:y"}).find("'npm:y'"), std::string::npos);
  EXPECT_NE(refusal({"h", "conda:x.yml", "--venv", "v"}).find("can't go into a virtual"),
            std::string::npos);
  EXPECT_EQ(refusal({"h", "conda:x.yml", "--conda", "v"}), "taken");
  EXPECT_NE(refusal({"h", "x", "--overlay"}).find("--overlay is for wheels"), std::string::npos);
  EXPECT_EQ(refusal({"h", "x", "wheel:y.whl", "--overlay"}), "taken");
}

}  // namespace
}  // namespace lockstep::cli
