#include "jobs/rented/course_why.h"

#include "base/date_text.h"
#include "jobs/rented/course_machines.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace lockstep::jobs::rented {
namespace {

constexpr std::int64_t kGone = 1'800'000'000'000;

cloud::Held machine(int node) {
  cloud::Held held{.machine = {.id = "i-1"}, .node = node};
  held.gone_ms = kGone;
  return held;
}

class CourseWhyTest : public ::testing::Test {
 protected:
  CourseWhyTest() {
    rental_.cluster = "lab";
    rental_.wish.nodes = 2;
    course_.losses = 1;
    course_.stage = cloud::RentedJob::Stage::working;
  }
  // Adds an attempt whose machines are gone.
  cloud::Attempt& lost(const std::string& code = kLostCode) {
    cloud::Attempt attempt{.offer = {}, .code = code, .machines = {machine(0), machine(1)}};
    attempt.offer.provider = "aws";
    attempt.offer.type = "g6.xlarge";
    attempt.offer.zone = "us-east-1a";
    attempt.offer.spot = true;
    rental_.attempts.push_back(std::move(attempt));
    return rental_.attempts.back();
  }
  Explanation said() const {
    return with_course({.text = "job x on lab: running\nadvice\n", .json = {{"id", "x"}}}, course_,
                       rental_);
  }

  cloud::Rental rental_;
  cloud::RentedJob course_;
};

TEST_F(CourseWhyTest, TheMachineThatWentIsNamedAndNotTheOnesThatTheCourseEnded) {
  cloud::Attempt& attempt = lost();
  attempt.machines[0].end_ms = kGone;
  attempt.machines[1].machine.taken = true;
  attempt.machines[1].machine.why = "Server.SpotInstanceTermination";
  EXPECT_EQ(said().text,
            "job x on lab: running\n"
            "attempt 1: lab-1, aws g6.xlarge (spot) in us-east-1a, was taken away by its provider "
            "at " +
                date_text(kGone) + ": Server.SpotInstanceTermination\nadvice\n");
  const auto json = said().json["course"];
  EXPECT_EQ(json["attempt"], 2);
  EXPECT_EQ(json["stage"], "working");
  ASSERT_EQ(json["losses"].size(), 1U);
  EXPECT_EQ(json["losses"][0]["machine"], "lab-1");
  EXPECT_EQ(json["losses"][0]["at_ms"], kGone);
}

TEST_F(CourseWhyTest, MachinesThatWereLeftAtANoticeAreAllNamed) {
  for (cloud::Held& held : lost().machines) {
    held.end_ms = kGone;
    held.gone_ms = 0;
  }
  const std::string text = said().text;
  EXPECT_NE(text.find("lab-0, aws"), std::string::npos) << text;
  EXPECT_EQ(said().json["course"]["losses"][0]["at_ms"], kGone) << "asked to end, and not gone yet";
  EXPECT_NE(text.find("lab-1, aws"), std::string::npos) << text;
}

TEST_F(CourseWhyTest, AMachineThatEndedByItselfWasNotTaken) {
  cloud::Attempt& attempt = lost();
  attempt.machines[1].end_ms = kGone;
  attempt.machines[0].machine.ended_ms = 5000;
  EXPECT_NE(said().text.find("lab-0, aws g6.xlarge (spot) in us-east-1a, has ended at " +
                             date_text(5000) + "\n"),
            std::string::npos)
      << said().text;
}

TEST_F(CourseWhyTest, ARefusedOfferIsNoAttemptOfTheJob) {
  lost("Full");
  lost();
  EXPECT_EQ(said().json["course"]["losses"][0]["attempt"], 1);
  EXPECT_EQ(said().json["course"]["losses"].size(), 2U);
}

TEST_F(CourseWhyTest, TheCourseSaysWhatItDoesNow) {
  course_.stage = cloud::RentedJob::Stage::renting;
  EXPECT_EQ(said().text, "job x on lab: running\nattempt 2: machines are being rented\nadvice\n");
  EXPECT_EQ(with_course({.text = "x\n", .json = {}}, course_, std::nullopt).text,
            "x\nattempt 2: machines are being rented\n");
}

}  // namespace
}  // namespace lockstep::jobs::rented
