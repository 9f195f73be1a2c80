// The member's first connection, and lost connections.
#include <cstdint>

#include "hub_member_core_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;
using namespace testing;  // NOLINT

TEST_F(HubMemberCoreTest, TheFirstConnectionHasTheLesserOfTwoPatiences) {
  core.begin(now);
  pass(70s);  // spent before connect()
  core.connect("h:1", now);
  EXPECT_EQ(done(), "dial 30 30");
  EXPECT_EQ(core.gives_up_at(), now + 30s);
  EXPECT_EQ(core.phase(), Phase::connecting);
  core.dial_failed(kRefused);
  EXPECT_EQ(heard(), "connected: Connection refused");
  EXPECT_EQ(core.phase(), Phase::idle);
  EXPECT_EQ(core.gives_up_at(), std::nullopt);
}

TEST_F(HubMemberCoreTest, NewsBelongToARoundAndCountAsNoMessage) {
  open();
  EXPECT_FALSE(core.send_news("early"));
  join(4);
  const auto messages = core.messages();
  EXPECT_TRUE(core.send_news("x"));
  EXPECT_EQ(done(), "news x");
  core.take(News{4, 2, "y"}, now);
  core.take(News{3, 2, "old"}, now);
  EXPECT_EQ(heard(), "news of 2: y");
  EXPECT_EQ(core.messages(), messages);
  core.lost(kClosed, now);
  done();
  EXPECT_FALSE(core.send_news("z"));
  EXPECT_EQ(done(), "");
}

TEST_F(HubMemberCoreTest, AConnectMayBeForgotten) {
  core.connect("h:1", now);
  core.forget_connect();
  EXPECT_EQ(done(), "dial 60 60, stop dialing");
  EXPECT_EQ(heard(), "");
  core.connect("i:1", now);
  link();
  EXPECT_EQ(heard(), "connected: ok");
}

TEST_F(HubMemberCoreTest, ARoundIsJoinedAndItsStoreOpened) {
  open();
  core.join(now);
  EXPECT_EQ(done(), "join");
  core.take(StoreWanted{0}, now);
  EXPECT_EQ(done(), "open store");
  core.store_offered(0, StorePlace{"10.0.0.1", 5});
  core.store_offered(0, fail(Errc::exhausted, "no port"));
  EXPECT_EQ(done(), "store 10.0.0.1, store no port");
  place(7);
  EXPECT_EQ(heard(), "joined round 7");
  EXPECT_TRUE(core.in_round());
  core.take(StoreWanted{8}, now);
  place(9);  // unasked
  EXPECT_EQ(done() + heard(), "");
}

TEST_F(HubMemberCoreTest, RefusedEndedAndSpare) {
  open();
  core.join(now);
  core.take(Beat{std::string("x") + std::string(kSpareStatus)}, now);
  EXPECT_EQ(core.gives_up_at(), std::nullopt);
  core.take(Beat{"1 of 2"}, now);
  EXPECT_EQ(core.gives_up_at(), now + 100s);
  core.take(Refusal{Why::closed, "the job is over", {}}, now);
  EXPECT_EQ(heard(), "joined: the job is over");
  EXPECT_EQ(core.phase(), Phase::idle);
  core.lost(kClosed, now);  // closed by the hub afterwards: no new connection
  EXPECT_EQ(done() + heard(), "join, hang up");
  core.join(now);
  EXPECT_EQ(done(), "dial 100 3");
  link();
  core.take(Ended{}, now);
  EXPECT_EQ(heard(), "spare");
}

// --- lost and made anew ---

TEST_F(HubMemberCoreTest, ReconnectingWhileARoundIsOfferedJoinsAgain) {
  open();
  core.join(now);
  EXPECT_EQ(done(), "join");
  core.take(Beat{"1 of 2 nodes have joined"}, now);
  core.lost(kClosed, now);
  EXPECT_EQ(core.status(), "");  // the status of the lost hub is out of date
  EXPECT_EQ(done(), "hang up, dial 100 3");
  EXPECT_EQ(heard(), "");
  EXPECT_EQ(core.phase(), Phase::joining);
  link();
  EXPECT_EQ(done(), "join");
  place(0);
  EXPECT_EQ(heard(), "joined round 0");
}

TEST_F(HubMemberCoreTest, AWelcomeAfterALossPutsTheNodeBackIntoItsRound) {
  in_a_round();
  core.lost(kClosed, now);
  EXPECT_EQ(done(), "hang up, dial 100 3");
  EXPECT_EQ(heard(), "");
  link();
  EXPECT_EQ(done(), "join running");
  core.finish();
  EXPECT_EQ(done(), "finish");
  core.lost(kClosed, now);
  link();
  EXPECT_EQ(done(), "hang up, dial 100 3, join finished");
  core.take(Finished{0}, now);
  EXPECT_EQ(heard(), "finished: ok");
  core.take(Interrupted{0, true, "late"}, now);
  EXPECT_EQ(heard(), "");
}

TEST_F(HubMemberCoreTest, AFailureIsToldAgainOnTheNextConnection) {
  in_a_round();
  core.lost(kClosed, now);
  core.tell_failure("boom", false);
  EXPECT_EQ(done(), "hang up, dial 100 3");
  link();
  EXPECT_EQ(done(), "join running, failed boom");
  core.take(Interrupted{0, false, "boom"}, now);
  EXPECT_EQ(heard(), "rejoin: boom");
  join(1);
  EXPECT_FALSE(core.failure());
}

TEST_F(HubMemberCoreTest, SilenceInterruptsARunningRoundAlone) {
  in_a_round();
  pass(20s);
  EXPECT_EQ(heard(), "");
  done();
  pass(4500ms, true);
  EXPECT_EQ(heard(), "");
  pass(1s, true);
  EXPECT_EQ(heard(),
            "rejoin: lost the connection to the rendezvous at h:1: no sign of life for 5.0 s");
  EXPECT_EQ(done(), "beat, beat, beat, beat, leave returns, hang up, dial 100 3");
  EXPECT_EQ(core.phase(), Phase::over);
  core.join(now);
  link();
  EXPECT_EQ(done(), "join");
  place(1);
  core.finish();
  heard();
  pass(10s, true);
  EXPECT_EQ(heard(), "");  // the workers have ended well
  EXPECT_EQ(core.phase(), Phase::finishing);
}

// The hub's last frame comes between two beats.
TEST_F(HubMemberCoreTest, SilenceIsNoticedWhenItsTimeIsOverAndNotAtTheNextBeat) {
  in_a_round();
  const auto silently = [&](std::chrono::milliseconds time) {
    for (const auto end = now + time; now < end; core.tick("W", now))
      now += 100ms;
  };
  silently(400ms);
  core.bytes_came(now);
  silently(4900ms);
  EXPECT_EQ(heard(), "");
  silently(100ms);
  EXPECT_EQ(heard(),
            "rejoin: lost the connection to the rendezvous at h:1: no sign of life for 5.0 s");
}

// This process was stopped, and the hub's frames lie unread.
TEST_F(HubMemberCoreTest, TimeInWhichThisProcessDidNotRunIsNotTheHubsSilence) {
  in_a_round();
  now += 60s;
  core.tick("W", now);
  EXPECT_EQ(heard(), "");
  core.bytes_came(now);
  pass(4s, true);
  EXPECT_EQ(heard(), "");
}

TEST_F(HubMemberCoreTest, AHostThatIsGoneEndsWhatWaitsForIt) {
  const std::string gone = "the host of the rendezvous at h:1 is gone: Connection refused";
  in_a_round();
  core.lost(kClosed, now);
  core.dial_failed(kRefused);
  EXPECT_EQ(heard(), "end: " + gone);
  core.finish();
  EXPECT_EQ(heard(), "finished: " + gone);
  core.join(now);
  EXPECT_EQ(done(), "hang up, dial 100 3, dial 100 3");
  core.dial_failed(kRefused);
  EXPECT_EQ(heard(), "joined: " + gone);
}

TEST_F(HubMemberCoreTest, AHostThatIsGoneEndsTheBarrierOnly) {
  in_a_round();
  core.finish();
  core.lost(kClosed, now);
  core.dial_failed({Errc::denied, "another token", {}, 0});
  EXPECT_EQ(heard(), "finished: another token");
}

TEST_F(HubMemberCoreTest, ThePatienceOfAJoinWithoutAConnectionEnds) {
  open();
  core.join(now);
  core.lost(kClosed, now);
  done();
  pass(99500ms);
  EXPECT_EQ(heard(), "");
  pass(500ms);
  EXPECT_EQ(heard(), "joined: joining timed out: W");
  EXPECT_EQ(done(), "stop dialing");
  EXPECT_EQ(core.next_time(), std::nullopt);
}

TEST_F(HubMemberCoreTest, TheHubMayMove) {
  in_a_round();
  core.move_to("h:1", now);
  EXPECT_EQ(done(), "");
  core.move_to("i:2", now);
  EXPECT_EQ(done(), "hang up, dial 100 100");
  link();
  EXPECT_EQ(done(), "join running");
  core.lost(kClosed, now);
  core.dial_failed(kRefused);
  EXPECT_EQ(heard(), "end: the host of the rendezvous at i:2 is gone: Connection refused");
  done();
  core.move_to("i:2", now);  // back at the same place
  EXPECT_EQ(done(), "hang up, dial 100 100");
  link();
  EXPECT_EQ(done(), "");  // the round is over
}

// A hub that lets the node in may never find a quorum, and the other nodes go on elsewhere.
// A first host that was started again formed the round, while the job went on elsewhere.
TEST_F(HubMemberCoreTest, ARoundOfAnotherJobIsNotTakenAlong) {
  in_a_round();
  core.forget_round();
  EXPECT_EQ(heard(), "rejoin: the job goes on at another host, without this round");
  const auto last_round = [&] {
    core.join(now);
    for (const Core::Step& step : core.take_steps())
      if (const auto* send = std::get_if<Core::Send>(&step))
        if (const auto* join = std::get_if<Join>(&send->frame)) return join->last_round;
    return std::int64_t{-2};
  };
  EXPECT_EQ(last_round(), -1);
  place(7);
  EXPECT_EQ(last_round(), 7);
}

TEST_F(HubMemberCoreTest, WorkersStandStillUnlessAHubLeads) {
  auto with = rules();
  with.succession = true;
  for (const bool leads : {false, true}) {
    core = Core(with);
    in_a_round();
    core.lost(kClosed, now);
    core.move_to("i:2", now);
    link();
    if (leads) core.led();
    pass(2500ms);
    core.move_to(leads ? "i:2" : "k:3", now);
    pass(500ms);
    EXPECT_EQ(heard(), leads ? "" : "rejoin: the rendezvous has no host: k:3 is gone");
    done();
  }
}

// Hubs that open and close again do not give the workers more time.
TEST_F(HubMemberCoreTest, HubsThatOnlyGatherDoNotProlongTheTimeWithoutAHub) {
  auto with = rules();
  with.succession = true;
  core = Core(with);
  in_a_round();
  core.lost(kClosed, now);
  pass(1500ms);
  link();
  pass(1000ms);
  core.lost(kClosed, now);
  EXPECT_EQ(heard(), "");
  pass(500ms);
  EXPECT_EQ(heard(), "rejoin: the rendezvous has no host: h:1 is gone");
}

TEST_F(HubMemberCoreTest, AfterTheEndNoHubIsAwaited) {
  in_a_round();
  EXPECT_TRUE(core.awaits_hub());
  core.finish();
  EXPECT_TRUE(core.awaits_hub());
  core.take(Finished{0}, now);
  EXPECT_FALSE(core.awaits_hub());
}

TEST_F(HubMemberCoreTest, SilenceIsCountedFromTheLastConnection) {
  in_a_round();
  pass(6s, true);
  ASSERT_NE(heard(), "");
  link();
  done();
  pass(4s, true);
  EXPECT_EQ(done(), "beat, beat, beat, beat");
  EXPECT_EQ(core.link(), Core::Link::up);
}

TEST_F(HubMemberCoreTest, AHostThatIsBackIsNotGone) {
  in_a_round();
  core.lost(kClosed, now);
  core.dial_failed(kRefused);
  core.join(now);
  link();
  place(1);
  done();
  heard();
  core.move_to("h:1", now);
  EXPECT_EQ(done(), "");
  core.finish();
  EXPECT_EQ(done() + heard(), "finish");
}

TEST_F(HubMemberCoreTest, WordsOfAnotherRoundAreNotHeeded) {
  in_a_round();
  core.take(Interrupted{1, true, "x"}, now);
  core.finish();
  core.take(Finished{1}, now);
  core.take(Reports{}, now);  // unasked
  EXPECT_EQ(heard(), "");
  core.take(Interrupted{0, false, "x"}, now);
  EXPECT_EQ(heard(), "rejoin: x");  // even if the workers have ended well
}

TEST_F(HubMemberCoreTest, WithoutARoundThereIsNoFailureToTell) {
  open();
  core.tell_failure("boom", true);
  EXPECT_EQ(done(), "");
  EXPECT_FALSE(core.failure());
}

TEST_F(HubMemberCoreTest, AJoinForgetsWhatTheHubSaidBefore) {
  in_a_round();
  core.finish();
  core.take(Beat{"the workers of 1 of 2 nodes to end: a"}, now);
  core.join(now);
  EXPECT_EQ(core.status(), "");
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
