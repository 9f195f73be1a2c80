#include "rendezvous/etcd3/etcd3_node_core.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::etcd3 {
namespace {

using Core = Etcd3NodeCore;
using Kind = Interruption::Kind;

// Returns a node whose agent waits for `asked`.
Core at(Core::Asked asked) {
  Core core;
  core.open();
  if (asked == Core::Asked::open) return core;
  core.hub_found();
  core.opened();
  if (asked == Core::Asked::nothing) return core;
  core.join();
  if (asked == Core::Asked::join) return core;
  core.joined(true);
  if (asked == Core::Asked::finish) core.finish();
  return core;
}

TEST(Etcd3NodeCore, FindsOneHubAndThenMoves) {
  Core core;
  core.open();
  EXPECT_EQ(core.hub_found(), Core::Reach::connect);
  EXPECT_EQ(core.hub_found(), Core::Reach::move);
  core.stop();
  EXPECT_EQ(core.hub_found(), Core::Reach::nowhere);
  EXPECT_EQ(core.stage(), Core::Stage::leaving);
}

TEST(Etcd3NodeCore, ARoundIsInterruptedOnceAndTheJobAlwaysEnds) {
  Core core = at(Core::Asked::nothing);
  EXPECT_FALSE(core.interrupted(Kind::rejoin));  // no round to interrupt
  core = at(Core::Asked::run);
  EXPECT_TRUE(core.interrupted(Kind::rejoin));
  EXPECT_FALSE(core.interrupted(Kind::rejoin));
  EXPECT_TRUE(core.interrupted(Kind::end));
  core.join();
  core.joined(true);
  EXPECT_TRUE(core.interrupted(Kind::rejoin));
  core = at(Core::Asked::finish);
  core.finished();
  EXPECT_EQ(core.asked(), Core::Asked::run);
  EXPECT_TRUE(core.interrupted(Kind::rejoin));
}

TEST(Etcd3NodeCore, AJoinThatBringsNoRoundLeavesNoneToInterrupt) {
  Core core = at(Core::Asked::join);
  core.joined(false);
  EXPECT_EQ(core.asked(), Core::Asked::nothing);
  EXPECT_EQ(core.lease_lost(true), Core::Lost::campaign);
}

TEST(Etcd3NodeCore, WhatAClosedJobMeans) {
  EXPECT_EQ(at(Core::Asked::open).job_closed(true, true), Core::Closed::refuse_open);
  EXPECT_EQ(at(Core::Asked::join).job_closed(true, true), Core::Closed::end_spare);
  EXPECT_EQ(at(Core::Asked::join).job_closed(true, false), Core::Closed::refuse_join);
  EXPECT_EQ(at(Core::Asked::run).job_closed(true, false), Core::Closed::interrupt);
  EXPECT_EQ(at(Core::Asked::finish).job_closed(true, false), Core::Closed::finish);
  EXPECT_EQ(at(Core::Asked::finish).job_closed(false, false), Core::Closed::interrupt);
  Core core = at(Core::Asked::run);
  core.stop();
  EXPECT_EQ(core.job_closed(false, false), Core::Closed::ignore);
}

TEST(Etcd3NodeCore, ALostLeaseStopsOnlyTheWorkersOfTheNodeThatLed) {
  EXPECT_EQ(at(Core::Asked::run).lease_lost(true), Core::Lost::campaign_and_rejoin);
  EXPECT_EQ(at(Core::Asked::run).lease_lost(false), Core::Lost::campaign);
  EXPECT_EQ(at(Core::Asked::join).lease_lost(true), Core::Lost::campaign);
  EXPECT_EQ(at(Core::Asked::finish).lease_lost(true), Core::Lost::campaign);
  Core core = at(Core::Asked::run);
  core.stop();
  EXPECT_EQ(core.lease_lost(true), Core::Lost::ignore);
}

TEST(Etcd3NodeCore, ANodeThatGivesUpAnswersWhatIsAsked) {
  EXPECT_EQ(at(Core::Asked::open).given_up(), Core::GiveUp::refuse_open);
  EXPECT_EQ(at(Core::Asked::nothing).given_up(), Core::GiveUp::interrupt);
  EXPECT_EQ(at(Core::Asked::join).given_up(), Core::GiveUp::refuse_join);
  EXPECT_EQ(at(Core::Asked::run).given_up(), Core::GiveUp::interrupt);
  EXPECT_EQ(at(Core::Asked::finish).given_up(), Core::GiveUp::refuse_finish);
  Core core = at(Core::Asked::run);
  core.stop();
  EXPECT_EQ(core.given_up(), Core::GiveUp::ignore);
}

TEST(Etcd3NodeCore, WhetherTheHubIsToldOfADeparture) {
  const struct {
    Departure how;
    bool hosts, in_round, job_over;
    Core::Leave decided;
  } rows[] = {
      {Departure::succeeded, true, true, false, Core::Leave::tell_hub},
      {Departure::failed, true, true, false, Core::Leave::tell_hub},
      {Departure::failed, true, false, true, Core::Leave::tell_hub},
      {Departure::failed, true, false, false, Core::Leave::go},
      {Departure::stopped, true, true, true, Core::Leave::go},
      {Departure::stopped, false, true, false, Core::Leave::tell_hub},
      {Departure::failed, false, false, false, Core::Leave::tell_hub},
  };
  for (const auto& row : rows) {
    Core core = at(Core::Asked::run);
    EXPECT_EQ(core.leave(row.how, row.hosts, row.in_round, row.job_over), row.decided);
    EXPECT_TRUE(core.leaving());
    EXPECT_EQ(core.asked(), Core::Asked::nothing);
  }
}

TEST(Etcd3NodeCore, TheLeaderHasTheLastWord) {
  Core core = at(Core::Asked::run);
  core.leave(Departure::succeeded, true, true, false);
  EXPECT_EQ(core.hub_told(true), Core::LastWord::write);
  EXPECT_EQ(core.lease_lost(true), Core::Lost::go);
  EXPECT_EQ(core.given_up(), Core::GiveUp::go);
  core.go();
  EXPECT_FALSE(core.in_last_word());
  EXPECT_EQ(core.lease_lost(false), Core::Lost::ignore);
}

TEST(Etcd3NodeCore, AGuestWaitsOnlyForTheFailureThatItWrites) {
  Core core = at(Core::Asked::run);
  core.leave(Departure::failed, false, true, false);
  EXPECT_EQ(core.hub_told(false), Core::LastWord::none);
  core = at(Core::Asked::run);
  core.failure_begun();
  core.leave(Departure::failed, false, true, false);
  EXPECT_EQ(core.hub_told(false), Core::LastWord::await_writing);
  EXPECT_TRUE(core.failure_written(false));
  core = at(Core::Asked::run);
  core.failure_begun();
  EXPECT_FALSE(core.failure_written(false));  // a later leave() need not wait
  core.leave(Departure::failed, false, true, false);
  EXPECT_EQ(core.hub_told(false), Core::LastWord::none);
}

}  // namespace
}  // namespace lockstep::rendezvous::etcd3
