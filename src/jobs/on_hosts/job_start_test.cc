// Starts a job over links whose hosts are played by the test.
#include "jobs/on_hosts/job_start.h"

#include "base/error_testing.h"
#include "codec/json.h"
#include "hosts/link_testing.h"
#include "proc/signals.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

namespace lockstep::jobs::on_hosts {
namespace {

class JobStartTest : public ::testing::Test {
 protected:
  JobStartTest() {
    proc::block(proc::handled_signals());
    request_.hosts = {{.name = "a", .target = {.host = "a"}},
                      {.name = "b", .target = {.host = "b"}}};
    request_.spec.id = "aaaa1111";
    links_.on_frame = [this](hosts::FakeLinks::End& end, const link::Frame& frame) {
      if (const auto* data = std::get_if<link::Data>(&frame)) answer(end, data->bytes);
      if (const auto* start = std::get_if<link::Start>(&frame))
        end.say(link::Started{start->channel, 42});
    };
  }
  void answer(hosts::FakeLinks::End& end, const std::string& line) {
    const bool go = codec::parse_json(line).contains("go");
    if (go && end.host == loses_at_go_) return end.lose("the connection broke");
    if (go && end.host == signals_at_go_) kill(getpid(), SIGTERM);
    end.say(link::Data{1, link::Stream::out, go ? "{\"started\":true}\n" : "{\"prepared\":{}}\n"});
  }
  Result<StartedJob> start() {
    return start_job(request_, links_.open_link(),
                     [this](io::Loop&, const hosts::CommandRequest& asked) {
                       canceled_.push_back(asked);
                       return Result<std::vector<hosts::HostEnding>>(
                           std::vector<hosts::HostEnding>{{}, {.code = 255, .error = "b: silent"}});
                     });
  }

  JobRequest request_;
  hosts::FakeLinks links_;
  std::string loses_at_go_;
  std::string signals_at_go_;
  std::vector<hosts::CommandRequest> canceled_;
};

TEST_F(JobStartTest, AJobStartsOnAllHosts) {
  EXPECT_TRUE(start());
  ASSERT_EQ(links_.ends.size(), 2U);
  EXPECT_FALSE(links_.ends[0]->open) << "the job does not need its client";
  EXPECT_TRUE(canceled_.empty());
}

// A job runs on all hosts or on none.
TEST_F(JobStartTest, AHalfBegunJobIsCanceledEverywhere) {
  loses_at_go_ = "b";
  const auto failed = start();
  EXPECT_EQ(failed.error().message, "b: the connection broke");
  ASSERT_EQ(canceled_.size(), 1U);
  EXPECT_EQ(canceled_[0].hosts.size(), 2U);
  EXPECT_EQ(canceled_[0].argv, (std::vector<std::string>{"host-job", "cancel", "aaaa1111"}));
}

TEST_F(JobStartTest, ASignalDuringTheStartCancelsWhatBegan) {
  signals_at_go_ = "a";
  links_.on_frame = [usual = links_.on_frame](hosts::FakeLinks::End& end,
                                              const link::Frame& frame) {
    const auto* data = std::get_if<link::Data>(&frame);
    const bool silent =
        data != nullptr && end.host == "b" && codec::parse_json(data->bytes).contains("go");
    if (!silent) usual(end, frame);
  };
  const auto stopped = start();
  EXPECT_EQ(code_of(stopped), Errc::canceled);
  EXPECT_EQ(stopped.error().sys, SIGTERM);
  EXPECT_EQ(canceled_.size(), 1U);
}

TEST_F(JobStartTest, ARequestThatIsTooLargeNeverWaits) {
  request_.spec.env = {"X=" + std::string(link::kWindow, 'x')};
  EXPECT_EQ(code_of(start()), Errc::invalid_input);
  EXPECT_TRUE(canceled_.empty());
}

}  // namespace
}  // namespace lockstep::jobs::on_hosts
