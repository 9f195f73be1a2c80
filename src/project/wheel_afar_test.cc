// Builds wheels without any host: a stand-in answers in place of the hosts.
#include "project/wheel_afar.h"

#include "setup/request.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace lockstep::project {
namespace {

class WheelAfarTest : public ::testing::Test {
 protected:
  // Builds a wheel for two hosts, and returns the error. The first word of a command selects its
  // endings in answers_.
  Error refusal() {
    setup::WheelRequest request;
    request.source = "deepspeed==0.16.5";
    WheelHosts where;
    where.hosts = {{.name = "gpus-0", .target = {}}, {.name = "gpus-1", .target = {}}};
    const auto built = build_wheel_on(
        where, request, [this](std::string_view line) { said_ += line; },
        [this](io::Loop&, const hosts::CommandRequest& command) {
          requests_.push_back(command);
          return Result<std::vector<hosts::HostEnding>>(answers_[command.argv.front()]);
        });
    return built ? Error{} : built.error();
  }

  std::map<std::string, std::vector<hosts::HostEnding>> answers_ = {
      {"host-ability", {{}, {}}},
      {"wheel", {{.out = R"({"path":"/there/a.whl","wheel":"a.whl","key":"0123"})"}}},
      {"cat", {{.code = 1}}}};
  std::vector<hosts::CommandRequest> requests_;
  std::string said_;
};

TEST_F(WheelAfarTest, TheReasonOfAHostThatGivesNoAnswerIsTold) {
  answers_["host-ability"][1] = {.code = 255, .error = "gpus-1: no route to host"};
  EXPECT_EQ(refusal().message, "cannot fetch the wheel on gpus-0");
  EXPECT_NE(said_.find("warning: gpus-1: no route to host"), std::string::npos) << said_;
}

TEST_F(WheelAfarTest, ALostHostIsTheReasonWhyNothingIsBuiltOrFetched) {
  answers_["cat"] = {{.code = 255, .error = "gpus-0 printed more than 512 MB"}};
  EXPECT_EQ(refusal().message, "cannot fetch the wheel: gpus-0 printed more than 512 MB");
  answers_["wheel"] = {{.code = 255, .error = "gpus-0: the connection was closed"}};
  EXPECT_EQ(refusal().message, "cannot build the wheel: gpus-0: the connection was closed");
  answers_["wheel"] = {{.code = 1}};
  EXPECT_EQ(refusal().message, "cannot build the wheel on gpus-0");
  EXPECT_EQ(refusal().hint, "its output is above");
}

TEST_F(WheelAfarTest, AWheelMayBeAsLargeAsForAnInstall) {
  refusal();
  ASSERT_EQ(requests_.size(), 3U);
  EXPECT_EQ(requests_[2].argv, (std::vector<std::string>{"cat", "/there/a.whl"}));
  EXPECT_EQ(requests_[2].most_kept, setup::kLargestWheel);
}

}  // namespace
}  // namespace lockstep::project
