#include "agent/profile_desk.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::agent {
namespace {

using status::ProfileState;
using std::chrono::seconds;

constexpr const char* kFolder = "/tmp/lockstep-profile-x";

class ProfileDeskTest : public ::testing::Test {
 protected:
  std::string poll(const std::string& name, int rank, bool idle = true) {
    return desk_.on_poll({.name = name, .rank = rank}, idle, kFolder, now_, 1'000'000);
  }
  // Returns the id of the new profile.
  std::int64_t begin(const status::ProfileWish& wish) {
    EXPECT_TRUE(desk_.begin(++id_, wish, {0, 1, 2}, now_, 1'000'000).value());
    return id_;
  }
  std::vector<ProfileState> states(std::int64_t id, const std::vector<int>& alive = {0, 1, 2}) {
    std::vector<ProfileState> found;
    for (const auto& rank : desk_.ranks(id, alive, now_))
      found.push_back(rank.state);
    return found;
  }

  ProfileDesk desk_;
  std::int64_t id_ = 0;
  io::TimePoint now_ = io::TimePoint(seconds(1000));
};

TEST_F(ProfileDeskTest, EachRankGetsTheOrderOnce) {
  EXPECT_EQ(poll("a", 0), "");
  const auto id = begin({.steps = 5, .every = 10});
  EXPECT_EQ(states(id),
            (std::vector{ProfileState::waiting, ProfileState::absent, ProfileState::absent}));
  const std::string order = poll("a", 0);
  EXPECT_NE(order.find("ACTIVITIES_LOG_FILE=/tmp/lockstep-profile-x/profile-1-rank-0.json\n"),
            std::string::npos)
      << order;
  EXPECT_NE(order.find("ACTIVITIES_ITERATIONS=5\n"), std::string::npos) << order;
  EXPECT_NE(order.find("ROUNDUP=10\n"), std::string::npos) << order;
  EXPECT_EQ(poll("a", 0), "");
  EXPECT_NE(poll("b", 1), "");
  EXPECT_EQ(states(id, {0, 1}),
            (std::vector{ProfileState::ordered, ProfileState::ordered, ProfileState::gone}));
  desk_.end(id);
  EXPECT_EQ(poll("c", 2), "");
  EXPECT_TRUE(states(id).empty());
}

TEST_F(ProfileDeskTest, TheFirstProcessOfARankIsProfiled) {
  poll("trainer", 0);
  poll("loader", 0);
  begin({.steps = 1});
  EXPECT_EQ(poll("loader", 0), "");
  EXPECT_NE(poll("trainer", 0), "");
  // The trainer has ended, as after a warm-up in a process of its own.
  desk_.end(1);
  now_ += seconds(13);
  begin({.steps = 1});
  EXPECT_NE(poll("loader", 0), "");
}

TEST_F(ProfileDeskTest, AProcessThatProfilesAlreadyGetsNoOrder) {
  const auto id = begin({.steps = 1, .ranks = "1"});
  EXPECT_EQ(poll("b", 1, false), "");
  EXPECT_EQ(states(id), (std::vector{ProfileState::busy}));
  EXPECT_EQ(poll("a", 0), "");  // not one of the ranks
  EXPECT_NE(poll("b", 1), "");
}

TEST_F(ProfileDeskTest, RanksBeginTogetherUnlessOneIsLate) {
  begin({.millis = 500});
  EXPECT_NE(poll("a", 0).find("PROFILE_START_TIME=1009000\n"), std::string::npos);
  const std::string late = desk_.on_poll({.name = "b", .rank = 1}, true, kFolder, now_, 1'008'000);
  EXPECT_EQ(late.find("PROFILE_START_TIME"), std::string::npos) << late;
  EXPECT_NE(late.find("ACTIVITIES_DURATION_MSECS=500\n"), std::string::npos) << late;
}

TEST_F(ProfileDeskTest, OneProfileAtATimeUntilItsLimit) {
  const auto refused = [this](const status::ProfileWish& wish) {
    return code_of(desk_.begin(77, wish, {0, 1}, now_, 0));
  };
  EXPECT_EQ(refused({}), Errc::invalid_input);
  EXPECT_EQ(refused({.steps = 1, .ranks = "x"}), Errc::invalid_input);
  EXPECT_EQ(code_of(desk_.begin(0, {.steps = 1}, {0, 1}, now_, 0)), Errc::invalid_input);
  EXPECT_EQ(desk_.begin(77, {.steps = 1}, {}, now_, 0), false) << "a node without ranks";
  EXPECT_EQ(desk_.begin(77, {.steps = 1, .ranks = "0"}, {}, now_, 0), false);
  const auto id = begin({.steps = 1, .limit = 100});
  now_ += seconds(179);
  EXPECT_EQ(refused({.steps = 1}), Errc::already_exists);
  states(id);
  now_ += seconds(179);
  EXPECT_EQ(refused({.steps = 1}), Errc::already_exists) << "its command has looked";
  EXPECT_EQ(poll("a", 0), "") << "after the limit";
}

TEST_F(ProfileDeskTest, RanksOfOtherNodesArePassedOver) {
  EXPECT_FALSE(desk_.begin(5, {.steps = 1, .ranks = "7-9"}, {0, 1, 2}, now_, 0).value());
  EXPECT_TRUE(states(5).empty());
  const auto id = begin({.steps = 1, .ranks = "0,7"});
  EXPECT_EQ(states(id), (std::vector{ProfileState::absent}));
  EXPECT_FALSE(desk_.begin(6, {.steps = 1, .ranks = "7"}, {0, 1, 2}, now_, 0).value())
      << "another profile does not matter to a node without a part in this one";
}

// Two hosts of a job that share their sockets both pass on the order.
TEST_F(ProfileDeskTest, AProfileThatHasBegunDoesNotBeginAgain) {
  const auto id = begin({.steps = 1});
  EXPECT_NE(poll("a", 0), "");
  EXPECT_FALSE(desk_.begin(id, {.steps = 1}, {0, 1, 2}, now_, 0).value());
  EXPECT_EQ(poll("a", 0), "");
}

TEST_F(ProfileDeskTest, AKilledCommandDoesNotBlockTheNextOne) {
  begin({.steps = 1, .limit = 86'400});
  now_ += seconds(181);
  EXPECT_EQ(begin({.steps = 1}), 2);
}

TEST_F(ProfileDeskTest, ARestartEndsTheProfile) {
  const auto id = begin({.steps = 1});
  EXPECT_NE(poll("a", 0), "");
  desk_.forget();
  EXPECT_EQ(poll("b", 1), "");  // of the new attempt
  EXPECT_EQ(states(id), (std::vector{ProfileState::gone, ProfileState::gone, ProfileState::gone}));
  desk_.end(id);
  begin({.steps = 1});
  EXPECT_NE(poll("b", 1), "");
}

TEST_F(ProfileDeskTest, TheListOfProcessesIsBounded) {
  for (int i = 0; i < 1000; ++i)
    EXPECT_LE(desk_.on_hello({.name = std::to_string(i), .rank = 0}, now_), 64);
  begin({.steps = 1});
  EXPECT_NE(poll("0", 0), "");
  desk_.forget();
  EXPECT_EQ(desk_.on_hello({.name = "1", .rank = 0}, now_), 1);
}

}  // namespace
}  // namespace lockstep::agent
