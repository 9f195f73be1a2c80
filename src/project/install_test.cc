// Installs packages on hosts without any host: the test makes the answers.
#include "project/install.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace lockstep::project {
namespace {

namespace fs = std::filesystem;
using State = setup::StepAnswer::State;

class InstallTest : public ::testing::Test {
 protected:
  InstallTest() {
    folder_ = fs::path(::testing::TempDir()) / ("project_install." + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    project_ = {.root = folder_.string(), .name = "code", .folder = ""};
    options_.run_command = [this](io::Loop&, const hosts::CommandRequest& request) {
      asked_ = request;
      return Result<std::vector<hosts::HostEnding>>(endings_);
    };
  }

  Result<std::vector<HostInstall>> install(std::vector<std::string> specs) {
    options_.specs = std::move(specs);
    std::vector<hosts::HostPlace> places;
    for (std::size_t i = 0; i < endings_.size(); ++i)
      places.push_back({.name = "gpus-" + std::to_string(i), .target = {}});
    return install_packages(places, project_, options_);
  }
  static hosts::HostEnding answer(const setup::SetupAnswer& answer) {
    return {.code = answer.code, .out = setup::print_answer(answer)};
  }

  fs::path folder_;
  Project project_;
  InstallOptions options_;
  std::vector<hosts::HostEnding> endings_;
  hosts::CommandRequest asked_;
};

TEST_F(InstallTest, EachHostTellsHowItWent) {
  setup::SetupAnswer good;
  good.steps = {{"pip:numpy", State::done, 1}, {"pip:torch", State::unchanged, 0}};
  good.environment.prefix = "/home/me/venv";
  setup::SetupAnswer bad;
  bad.code = 3;
  bad.error = "pip failed";
  bad.hint = "see above";
  endings_ = {answer(good), answer(bad), {.code = 255, .error = "gpus-2: lost"}, {.code = 0}};
  const auto installs = install({"pip:numpy"});
  ASSERT_TRUE(installs);
  EXPECT_EQ(summary_of((*installs)[0]), "1 done, 1 unchanged; /home/me/venv");
  EXPECT_EQ((*installs)[0].error, "");
  EXPECT_EQ((*installs)[1].code, 3);
  EXPECT_EQ((*installs)[1].error, "gpus-1: pip failed");
  EXPECT_EQ((*installs)[1].hint, "see above");
  EXPECT_EQ((*installs)[2].error, "gpus-2: lost");
  EXPECT_EQ((*installs)[3].code, 255) << "no answer is no success";
  EXPECT_EQ((*installs)[3].error, "gpus-3: the install was cut off");
  EXPECT_EQ(code_of(*installs), 3);
  EXPECT_EQ(asked_.argv, std::vector<std::string>{"host-setup"});
}

TEST_F(InstallTest, AWheelGoesBehindTheRequest) {
  std::ofstream(folder_ / "demo-1.0-py3-none-any.whl") << "wheel";
  endings_ = {answer({})};
  ASSERT_TRUE(install({"wheel:demo-1.0-py3-none-any.whl"})) << "a path of the project";
  const std::string& given = asked_.given.at(0);
  EXPECT_TRUE(given.ends_with("\nwheel"));
  EXPECT_NE(given.find("demo-1.0-py3-none-any.whl"), std::string::npos);
}

TEST_F(InstallTest, NothingIsAskedWhereASpecMakesNoSense) {
  EXPECT_FALSE(install({"wheel:missing-1.0-py3-none-any.whl"}));
  fs::create_directories(folder_ / "folder-1.0-py3-none-any.whl");
  EXPECT_FALSE(install({"wheel:folder-1.0-py3-none-any.whl"}));
  EXPECT_TRUE(asked_.argv.empty());
}

}  // namespace
}  // namespace lockstep::project
