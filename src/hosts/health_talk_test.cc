// Asks for the health of a machine without any machine: the test makes the frames.
#include "hosts/health_talk.h"

#include "codec/json_members.h"
#include "io/loop_testing.h"

#include <gtest/gtest.h>

#include <optional>

namespace lockstep::hosts {
namespace {

constexpr std::size_t kMeasuredBytes = 2UL << 20;

class HealthTalkTest : public ::testing::Test {
 protected:
  void start() {
    talk_.begin(true);
    talk_.on_frame(link::Started{1, 42});
  }
  void say(const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += link::kMaxData)
      talk_.on_frame(link::Data{1, link::Stream::out, bytes.substr(at, link::kMaxData)});
  }
  std::string input() const {
    std::string bytes;
    for (const link::Frame& frame : sent_)
      if (const auto* data = std::get_if<link::Data>(&frame)) bytes += data->bytes;
    return bytes;
  }
  std::string error() const { return report_ && !*report_ ? report_->error().message : ""; }

  io::Loop loop_;
  std::vector<link::Frame> sent_;
  std::optional<Result<HealthReport>> report_;
  HealthTalk talk_{loop_, 1, [this](const link::Frame& frame) { sent_.push_back(frame); },
                   [this](Result<HealthReport> report) { report_ = std::move(report); }};
};

TEST_F(HealthTalkTest, ClockRatesAndFactsComeInTurn) {
  start();
  EXPECT_NE(input().find("\"gpus\":true"), std::string::npos);
  talk_.on_frame(link::Credit{1, link::Stream::in, 1000});  // the question was read
  say("{\"clock_ns\":0}\n");
  // The measured bytes fill the window: the end of the input waits until the host has read some.
  ASSERT_TRUE(io::run_until(loop_, [&] { return input().size() >= kMeasuredBytes; }));
  talk_.on_frame(link::Credit{1, link::Stream::in, 1000});
  ASSERT_TRUE(io::run_until(
      loop_, [&] { return !sent_.empty() && std::holds_alternative<link::Eof>(sent_.back()); }));
  EXPECT_GE(input().size(), kMeasuredBytes);
  say(std::string(kMeasuredBytes, 'x'));
  nlohmann::ordered_json answer;
  answer["facts"] = machine::to_json(machine::HealthFacts{.driver = "550.1"});
  answer["down_ms"] = 100;
  say(codec::print_json(answer));
  talk_.on_frame(link::Exit{1, 0, 0});
  ASSERT_TRUE(report_ && *report_) << error();
  EXPECT_EQ((*report_)->facts.driver, "550.1");
  EXPECT_LT((*report_)->measures.clock_ahead_ms, 0) << "a clock at 1970 is behind";
  EXPECT_NEAR((*report_)->measures.down_mb_s, 20.97, 0.01);
  EXPECT_GT((*report_)->measures.up_mb_s, 0);
}

TEST_F(HealthTalkTest, AnAnswerWithoutATimeIsAnError) {
  start();
  say("noon\n");
  EXPECT_NE(error(), "");
}

TEST_F(HealthTalkTest, AFailedProgramIsToldWithItsLastLine) {
  start();
  talk_.on_frame(link::Data{1, link::Stream::err, "no such option\n"});
  talk_.on_frame(link::Exit{1, 2, 0});
  EXPECT_EQ(error(), "its lockstep exited with code 2: no such option");
  talk_.on_frame(link::Data{1, link::Stream::out, "late"});
}

TEST_F(HealthTalkTest, ARefusalIsTold) {
  talk_.begin(false);
  talk_.on_frame(link::Refused{1, 126, "no channel for it"});
  EXPECT_EQ(error(), "no channel for it");
}

TEST_F(HealthTalkTest, FactsThatCannotBeReadAreAnError) {
  start();
  say("{\"clock_ns\":0}\n" + std::string(kMeasuredBytes, 'x') + "nonsense");
  talk_.on_frame(link::Exit{1, 0, 0});
  EXPECT_NE(error(), "");
}

}  // namespace
}  // namespace lockstep::hosts
