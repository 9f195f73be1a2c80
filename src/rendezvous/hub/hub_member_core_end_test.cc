// How a member leaves: stops, reports, and counted messages.
#include "hub_member_core_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;
using namespace testing;  // NOLINT

TEST_F(HubMemberCoreTest, LeavingWhileJoiningWaitsForTheHubsWord) {
  open();
  core.join(now);
  core.leave(Departure::failed, now);
  EXPECT_EQ(done(), "join, leave failed");
  place(0);
  EXPECT_EQ(heard(), "");
  core.take(Left{}, now);
  EXPECT_EQ(heard(), "left");
  EXPECT_EQ(done(), "hang up");
}

TEST_F(HubMemberCoreTest, LeavingHasAnEndWhateverTheHubDoes) {
  in_a_round();
  core.leave(Departure::succeeded, now);
  EXPECT_EQ(done(), "leave succeeded");
  pass(29s);
  EXPECT_EQ(heard(), "");
  pass(1s);
  EXPECT_EQ(heard(), "left");
  done();
  in_a_round();
  core.leave(Departure::stopped, now);
  core.lost(kClosed, now);
  EXPECT_EQ(heard(), "left");
  EXPECT_EQ(core.link(), Core::Link::none);
}

TEST_F(HubMemberCoreTest, LeavingWithoutAConnectionIsDoneAtOnce) {
  in_a_round();
  core.lost(kClosed, now);
  core.leave(Departure::failed, now);
  EXPECT_EQ(done(), "hang up, dial 100 3, stop dialing");
  EXPECT_EQ(heard(), "");  // told in a later turn
  EXPECT_EQ(core.next_time(), now);
  core.tick("W", now);
  EXPECT_EQ(heard(), "left");
}

TEST_F(HubMemberCoreTest, WhatIsNotAskedAnyMoreIsNotTold) {
  in_a_round();
  core.take(Interrupted{0, false, "x"}, now);
  core.leave(Departure::stopped, now);
  EXPECT_EQ(heard(), "");
}

TEST_F(HubMemberCoreTest, AStopIsToldOnce) {
  in_a_round();
  core.tell_stop();
  core.tell_stop();
  EXPECT_EQ(done(), "leave stopped");
  core.leave(Departure::stopped, now);
  EXPECT_EQ(done(), "");
  core.take(Left{}, now);
  EXPECT_EQ(heard(), "left");
  done();
  in_a_round();
  core.tell_stop();
  core.take(Left{}, now);
  EXPECT_EQ(done(), "leave stopped, hang up");
  core.leave(Departure::stopped, now);
  core.tick("W", now);
  EXPECT_EQ(heard(), "left");
}

TEST_F(HubMemberCoreTest, ReportsComeOrTimePassesOrTheConnectionBreaks) {
  in_a_round();
  const NodeReport own{"b", 1, "mine"};
  core.exchange_reports(own, 10s, now);
  EXPECT_EQ(done(), "report");
  core.take(Reports{{{"a", 0, "x"}, {"b", 1, "mine"}}}, now);
  EXPECT_EQ(heard(), "reports 2");
  core.exchange_reports(own, 10s, now);
  pass(9500ms);
  EXPECT_EQ(heard(), "");
  pass(500ms);
  EXPECT_EQ(heard(), "reports 1");
  core.exchange_reports(own, 10s, now);
  core.lost(kClosed, now);
  EXPECT_EQ(heard(), "reports 1");
  core.exchange_reports(own, 10s, now);  // without a connection
  core.leave(Departure::failed, now);
  EXPECT_EQ(heard(), "reports 1");
}

TEST_F(HubMemberCoreTest, MessagesAreCountedWithoutHeartbeats) {
  in_a_round();
  EXPECT_EQ(core.messages(), 4U);  // the greeting, join, placed
  pass(5s);
  core.take(Beat{"x"}, now);
  EXPECT_EQ(core.messages(), 4U);
}

TEST_F(HubMemberCoreTest, AStopEndsTheSearchForTheHub) {
  in_a_round();
  core.tell_failure("boom", false);
  core.join(now);
  core.lost(kClosed, now);
  done();
  core.tell_stop();
  EXPECT_EQ(done(), "stop dialing");
  EXPECT_EQ(core.next_time(), std::nullopt);
  EXPECT_FALSE(core.failure());
}

// The owner's search for another hub has failed while this member was at a hub that does not lead.
TEST_F(HubMemberCoreTest, AnOwnerThatGivesUpEndsTheWaitForAnyHub) {
  in_a_round();
  Interrupted lost;
  lost.round = 0;
  lost.why = "b is gone";
  core.take(lost, now);
  EXPECT_EQ(heard(), "rejoin: b is gone");
  core.join(now);
  EXPECT_EQ(done(), "join");
  core.give_up({Errc::canceled, "nobody hosts", {}, 0});
  EXPECT_EQ(done(), "hang up");
  EXPECT_EQ(heard(), "joined: nobody hosts");
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
