// Checks a host without any host: the test makes the frames and both clocks.
#include "hosts/probe_course.h"

#include "codec/json.h"
#include "host/facts_json.h"

#include <gtest/gtest.h>

#include <chrono>

namespace lockstep::hosts {
namespace {

using std::chrono::milliseconds;

class ProbeCourseTest : public ::testing::Test {
 protected:
  void SetUp() override { check_.name = "gpus-0"; }

  void answer(const link::Frame& frame, int after_ms = 0) {
    now_.steady += milliseconds(after_ms);
    now_.wall_ms += after_ms;
    course_.take(frame);
  }
  void pings() {
    course_.begin();
    answer(link::Pong{}, 700);  // includes the log-in
    for (int i = 1; i <= 9; ++i)
      answer(link::Pong{}, i);
  }
  void clocks() {
    answer(link::Started{1, 42});
    for (const int round_trip : {9, 4, 8, 6, 7}) {
      // The clock of the host is 1,000 ms ahead, and is read in the middle of the round trip.
      const double there_ms = now_.wall_ms + round_trip / 2.0 + 1000;
      answer(link::Data{1, link::Stream::out,
                        std::to_string(static_cast<std::int64_t>(there_ms * 1e6)) + "\n"},
             round_trip);
    }
  }
  static std::string facts() {
    nlohmann::ordered_json json;
    json["facts"] = host::facts_json({});
    json["repaired"] = {"a stale socket"};
    return codec::print_json(json) + "\n";
  }

  CheckRequest request_{.hosts = {}, .project = "demo", .repair = true};
  HostCheck check_;
  ProbeCourse::Now now_{io::TimePoint(milliseconds(5000)), 1e12};
  std::vector<link::Frame> sent_;
  ProbeCourse course_{request_, check_,
                      [this](const link::Frame& frame) { sent_.push_back(frame); },
                      [this] { return now_; }};
};

TEST_F(ProbeCourseTest, AHostTellsItsDistanceItsClockAndItsFacts) {
  EXPECT_TRUE(sent_.empty());
  pings();
  EXPECT_EQ(check_.latency_ms, 5) << "the median, without the log-in";
  const auto& start = std::get<link::Start>(sent_.back());
  EXPECT_EQ(start.argv, (std::vector<std::string>{"host-facts", "--repair", "--project", "demo"}));
  clocks();
  EXPECT_EQ(check_.clock_error_ms, 2) << "half of the shortest round trip";
  EXPECT_NEAR(check_.clock_ahead_ms, 1000, 0.01);
  EXPECT_TRUE(std::holds_alternative<link::Eof>(sent_.back()));
  answer(link::Data{1, link::Stream::out, facts()});
  answer(link::Exit{1, 0, 0});
  EXPECT_TRUE(course_.is_over());
  EXPECT_EQ(check_.error, "");
  EXPECT_EQ(check_.repaired, std::vector<std::string>{"a stale socket"});
}

TEST_F(ProbeCourseTest, ATimeThatIsNoNumberEndsTheCheck) {
  pings();
  answer(link::Started{1, 42});
  answer(link::Data{1, link::Stream::out, "noon\n"});
  EXPECT_TRUE(course_.is_over());
  EXPECT_EQ(check_.error, "gpus-0: the answer has no time: noon");
  answer(link::Exit{1, 0, 0});
  EXPECT_EQ(check_.error, "gpus-0: the answer has no time: noon");
}

TEST_F(ProbeCourseTest, FailuresOfTheHostAreTold) {
  pings();
  answer(link::Refused{1, 126, "no channel for it"});
  EXPECT_EQ(check_.error, "gpus-0: no channel for it");
}

TEST_F(ProbeCourseTest, AKilledProgramIsTold) {
  pings();
  answer(link::Started{1, 42});
  answer(link::Exit{1, 0, 9});
  EXPECT_EQ(check_.error, "gpus-0: its lockstep was killed by SIGKILL");
}

TEST_F(ProbeCourseTest, FactsThatMakeNoSenseAreTold) {
  pings();
  clocks();
  answer(link::Data{1, link::Stream::out, "{}\n"});
  answer(link::Exit{1, 0, 0});
  EXPECT_EQ(check_.error, "gpus-0: the host's lockstep printed no readable facts");
}

TEST_F(ProbeCourseTest, AnAnswerWithoutEndIsCut) {
  pings();
  answer(link::Started{1, 42});
  const std::string much(link::kMaxData, 'x');
  for (int i = 0; i < 17; ++i)
    answer(link::Data{1, link::Stream::out, much});
  EXPECT_EQ(check_.error, "gpus-0: its answer is too long");
}

TEST_F(ProbeCourseTest, TheOwnerMayEndIt) {
  course_.begin();
  course_.fail("gpus-0: the connection was closed");
  answer(link::Pong{}, 1);
  EXPECT_EQ(sent_.size(), 1U) << "the first ping";
  EXPECT_EQ(check_.error, "gpus-0: the connection was closed");
}

}  // namespace
}  // namespace lockstep::hosts
