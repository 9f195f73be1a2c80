#include "project/outputs.h"

#include "base/error_testing.h"
#include "sync/pieces.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lockstep::project {
namespace {

// The machine does not answer. sync_test.cc of `project` has machines that do.
class OutputsTest : public ::testing::Test {
 protected:
  OutputsTest() {
    std::string name = ::testing::TempDir() + "outputsXXXXXX";
    top_ = mkdtemp(name.data());
    std::filesystem::create_directories(top_ + "/code/out");
    setenv("XDG_STATE_HOME", (top_ + "/state").c_str(), 1);
    project_ = {.root = top_ + "/code", .name = "code", .folder = ""};
    settings_.run_command = [this](io::Loop&, const hosts::CommandRequest& request) {
      ++asked_;
      const std::string& host = request.hosts.front().name;
      if (const auto answer = answers_.find(host); answer != answers_.end())
        return std::vector<hosts::HostEnding>(1, {.out = answer->second});
      return std::vector<hosts::HostEnding>(request.hosts.size(),
                                            {.code = code_, .error = host + ": no route"});
    };
    settings_.remark = [this](const std::string& text) { remarks_ += text + "\n"; };
  }
  ~OutputsTest() override {
    unsetenv("XDG_STATE_HOME");
    std::filesystem::remove_all(top_);
  }

  std::string top_;
  Project project_;
  SyncOptions settings_;
  hosts::HostPlace place_{.name = "lab-0", .target = {.host = "192.0.2.1"}};
  int asked_ = 0;
  std::string remarks_;
  int code_ = 255;                              // of a host that does not answer
  std::map<std::string, std::string> answers_;  // by host; others do not answer
};

TEST_F(OutputsTest, OutputsOfASilentMachineAreNotHere) {
  const Status brought = bring_outputs({place_}, project_, {"out"}, settings_);
  ASSERT_FALSE(brought);
  EXPECT_EQ(code_of(brought), Errc::unavailable);
  EXPECT_NE(brought.error().message.find("no route"), std::string::npos) << brought.error().message;
  EXPECT_EQ(remarks_, "");
}

TEST_F(OutputsTest, ASilentMachineKeepsNoOtherFromBringing) {
  const hosts::HostPlace other{.name = "lab-1", .target = {.host = "192.0.2.2"}};
  EXPECT_FALSE(bring_outputs({place_, other}, project_, {"out"}, settings_));
  EXPECT_EQ(asked_, 2);
  EXPECT_NE(remarks_.find("no route"), std::string::npos) << remarks_;
}

TEST_F(OutputsTest, AHostOfManyMayHaveNoOutputs) {
  const hosts::HostPlace other{.name = "lab-1", .target = {.host = "192.0.2.2"}};
  const std::string none = sync::encode_listing(fail(Errc::not_found, "there is no out there"));
  answers_ = {{"lab-0", none}, {"lab-1", sync::encode_listing(sync::Manifest())}};
  EXPECT_TRUE(bring_outputs({place_, other}, project_, {"out"}, settings_));
  EXPECT_EQ(remarks_, "lab-1: out: 0 files, 0 B brought back\n");
  answers_["lab-1"] = none;
  EXPECT_EQ(code_of(bring_outputs({place_, other}, project_, {"out"}, settings_)), Errc::not_found);
  EXPECT_EQ(code_of(bring_outputs({place_, other}, project_, {"out", "log"}, settings_)),
            Errc::not_found);
  EXPECT_NE(remarks_.find("there is no out there"), std::string::npos) << remarks_;
  // A host that does not answer may have some.
  answers_.erase("lab-1");
  EXPECT_EQ(code_of(bring_outputs({place_, other}, project_, {"out"}, settings_)),
            Errc::unavailable);
}

TEST_F(OutputsTest, ASignalEndsTheBringingFromAllHosts) {
  const hosts::HostPlace other{.name = "lab-1", .target = {.host = "192.0.2.2"}};
  code_ = 130;
  const Status brought = bring_outputs({place_, other}, project_, {"out", "log"}, settings_);
  ASSERT_EQ(code_of(brought), Errc::canceled);
  EXPECT_EQ(brought.error().sys, SIGINT);
  EXPECT_EQ(asked_, 1);
}

TEST_F(OutputsTest, APathOutsideOfTheProjectIsNotBrought) {
  EXPECT_EQ(code_of(bring_outputs({place_}, project_, {"../other"}, settings_)),
            Errc::invalid_input);
  EXPECT_EQ(asked_, 0);
}

TEST_F(OutputsTest, OnlyFoldersThatAreHereAreSent) {
  EXPECT_TRUE(send_outputs({place_}, project_, {"never-made"}, settings_));
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(code_of(send_outputs({place_}, project_, {"out"}, settings_)), Errc::unavailable);
}

}  // namespace
}  // namespace lockstep::project
