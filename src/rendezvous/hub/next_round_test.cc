// The steps of a round that is being made, and answers that come too late or from others.
#include "rendezvous/hub/next_round.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;

constexpr Time kStart{1h};

NextRound after(std::int64_t first_round) {
  CoordinatorSettings settings;
  settings.first_round = first_round;
  return NextRound(settings);
}

TEST(NextRound, ALastCallIsShortenedAndNeverLengthened) {
  NextRound next = after(0);
  EXPECT_FALSE(next.last_call(kStart, 30s));
  EXPECT_FALSE(next.last_call(kStart + 5s, 1s));
  EXPECT_EQ(next.last_call_until(), kStart + 6s);
  EXPECT_TRUE(next.last_call(kStart + 6s, 30s));
  next.stop_last_call();
  EXPECT_FALSE(next.last_call(kStart + 6s, 30s));
  next.offer({1}, kStart + 7s);
  EXPECT_FALSE(next.last_call_until());
}

TEST(NextRound, NumbersAreNeverGivenTwice) {
  NextRound next = after(7);
  EXPECT_TRUE(next.is_first());
  next.follow(3);
  EXPECT_TRUE(next.is_first());
  EXPECT_EQ(next.offer({1}, kStart).number, 7);
  EXPECT_FALSE(next.is_first());
  next.drop();
  EXPECT_EQ(next.offer({1}, kStart).number, 8);
  next.follow(11);
  EXPECT_EQ(next.offer({1}, kStart).number, 12);
}

TEST(NextRound, OnlyRankZerosAnswerForThisRoundCountsOnce) {
  NextRound next = after(0);
  EXPECT_FALSE(next.awaits(1, {0, "addr", 7000, ""}));
  next.offer({1, 2}, kStart);
  EXPECT_FALSE(next.awaits(2, {0, "addr", 7000, ""}));
  EXPECT_FALSE(next.awaits(1, {1, "addr", 7000, ""}));
  ASSERT_TRUE(next.awaits(1, {0, "addr", 7000, ""}));
  EXPECT_FALSE(next.take(0));
  next.open({0, "addr", 7000, ""});
  EXPECT_FALSE(next.awaits(1, {0, "addr", 7000, ""}));
  EXPECT_FALSE(next.take(1));
  const auto offer = next.take(0);
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->store.port, 7000);
  EXPECT_EQ(offer->ranks, (std::vector<PeerId>{1, 2}));
  EXPECT_FALSE(next.take(0));
}

TEST(NextRound, RankZeroIsLateUntilItHasAnswered) {
  NextRound next = after(0);
  EXPECT_FALSE(next.is_late(kStart + 99s));
  next.offer({1}, kStart);
  EXPECT_FALSE(next.is_late(kStart + 29s));
  EXPECT_TRUE(next.is_late(kStart + 30s));
  next.open({0, "addr", 7000, ""});
  EXPECT_FALSE(next.is_late(kStart + 99s));
  next.drop();
  next.offer({1}, kStart);
  EXPECT_TRUE(next.awaits_store()) << "the store belonged to the round that was dropped";
}

TEST(NextRound, ANodeKeepsItsPlaceOnANewConnection) {
  NextRound next = after(0);
  EXPECT_FALSE(next.move(1, 5));
  next.offer({1, 2}, kStart);
  EXPECT_FALSE(next.move(3, 5));
  EXPECT_TRUE(next.move(1, 5));
  EXPECT_FALSE(next.has(1));
  EXPECT_EQ(next.offered()->first(), 5U);
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
