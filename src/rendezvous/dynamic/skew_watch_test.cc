#include "rendezvous/dynamic/skew_watch.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::dynamic {
namespace {
using namespace std::chrono_literals;

TEST(SkewWatch, OnlyAFreshHeartbeatTells) {
  const Node self{"a", 1, 0};
  const Node other{"b", 1, 0};
  const UtcTime start{std::chrono::sys_days(std::chrono::year(2026) / 1 / 2)};
  SkewWatch watch(8s);
  RendezvousState state;
  state.last_heartbeats[self] = start - 1h;
  state.last_heartbeats[other] = start - 20s;
  EXPECT_FALSE(watch.look(state, self, start)) << "it may have been written 20 s ago";
  EXPECT_FALSE(watch.look(state, self, start + 1s));
  state.last_heartbeats[self] = start - 30min;
  state.last_heartbeats[other] = start - 19s;
  const auto skew = watch.look(state, self, start + 2s);
  ASSERT_TRUE(skew);
  EXPECT_EQ(skew->node, other);
  EXPECT_EQ(skew->ahead, -20s) << "behind the look before at least";
  state.last_heartbeats[other] = start - 10s;
  EXPECT_FALSE(watch.look(state, self, start + 10s)) << "once is enough";
}

TEST(SkewWatch, BesideTorchrunOursFollowItsClock) {
  const Node self{"a", 1, local_id_of({})};
  const Node ours{"b", 1, local_id_of({})};
  const Node theirs{"c", 1, 0};
  const UtcTime start{std::chrono::sys_days(std::chrono::year(2026) / 1 / 2)};
  SkewWatch watch(8s);
  RendezvousState state;
  state.last_heartbeats[ours] = state.last_heartbeats[theirs] = start;
  EXPECT_FALSE(watch.look(state, self, start));
  state.last_heartbeats[ours] = state.last_heartbeats[theirs] = start + 25s;
  const auto skew = watch.look(state, self, start + 5s);
  ASSERT_TRUE(skew);
  EXPECT_EQ(skew->node, theirs);
  EXPECT_FALSE(watch.look(state, self, start + 6s));
}

// The heartbeat was written while this process was stopped, or read before the stop.
TEST(SkewWatch, WhoWasStoppedItselfBlamesNobody) {
  const Node self{"a", 1, 0};
  const Node other{"b", 1, 0};
  const UtcTime start{std::chrono::sys_days(std::chrono::year(2026) / 1 / 2)};
  SkewWatch watch(8s);
  RendezvousState state;
  state.last_heartbeats[other] = start;
  EXPECT_FALSE(watch.look(state, self, start));
  state.last_heartbeats[other] = start + 5s;
  EXPECT_FALSE(watch.look(state, self, start + 20s));
  state.last_heartbeats[other] = start + 10s;
  const auto skew = watch.look(state, self, start + 21s);
  ASSERT_TRUE(skew);
  EXPECT_EQ(skew->ahead, -10s);
}

TEST(SkewWatch, NearIsGoodEnough) {
  const Node self{"a", 1, 0};
  const UtcTime start{std::chrono::sys_days(std::chrono::year(2026) / 1 / 2)};
  SkewWatch watch(8s);
  RendezvousState state;
  for (int beat = 0; beat < 5; ++beat) {
    state.last_heartbeats[Node{"b", 1, 0}] = start + beat * 5s + 3s;
    EXPECT_FALSE(watch.look(state, self, start + beat * 5s));
  }
}

}  // namespace
}  // namespace lockstep::rendezvous::dynamic
