#include "jobs/here/profile_course.h"

#include <gtest/gtest.h>

namespace lockstep::jobs::here {
namespace {

using status::ProfileState;
using std::chrono::seconds;

constexpr io::TimePoint kStart{seconds(1000)};

TEST(ProfileCourse, WaitsForRanksThatMayStillAnswer) {
  ProfileCourse course(kStart, seconds(60));
  EXPECT_EQ(course.feed({{.rank = 0, .state = ProfileState::ordered},
                         {.rank = 1, .state = ProfileState::waiting},
                         {.rank = 2, .state = ProfileState::absent}}),
            (std::vector{0, 1, 2}));
  EXPECT_FALSE(course.is_over(kStart));
  EXPECT_EQ(course.waits_for(),
            "waiting for 1 rank to finish the profile, 1 rank to fetch the order, "
            "1 rank to ask for orders");
  course.taken(0);
  EXPECT_EQ(course.feed({{.rank = 1, .state = ProfileState::gone}}), (std::vector{1, 2}));
  EXPECT_FALSE(course.is_over(kStart + seconds(14)));
  EXPECT_TRUE(course.is_over(kStart + seconds(15)));
  EXPECT_EQ(course.missing(),
            (std::vector<std::string>{
                "rank 2: no process asks for profiles: PyTorch without Kineto, or not imported yet",
                "rank 1: has ended"}));
}

TEST(ProfileCourse, TheLimitEndsIt) {
  ProfileCourse course(kStart, seconds(60));
  course.feed(
      {{.rank = 0, .state = ProfileState::ordered}, {.rank = 1, .state = ProfileState::ordered}});
  EXPECT_FALSE(course.is_over(kStart + seconds(59)));
  EXPECT_TRUE(course.is_over(kStart + seconds(60)));
  ASSERT_EQ(course.missing().size(), 1U);
  EXPECT_TRUE(course.missing()[0].starts_with("ranks 0-1: no trace was written in time"));
  course.taken(0);
  course.failed(1, "disk full");
  EXPECT_EQ(course.missing(), (std::vector<std::string>{"rank 1: disk full"}));
  course.taken(1);
  EXPECT_TRUE(course.is_over(kStart));
  EXPECT_EQ(course.waits_for(), "");
}

}  // namespace
}  // namespace lockstep::jobs::here
