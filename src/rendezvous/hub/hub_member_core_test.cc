#include "rendezvous/hub/hub_member_core.h"

#include <gtest/gtest.h>

#include <errno.h>

#include <string>
#include <utility>
#include <vector>

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;
using Core = HubMemberCore;
using Phase = Core::Phase;

const Error kRefused{Errc::unavailable, "Connection refused", {}, ECONNREFUSED};
const Error kClosed{Errc::unavailable, "the connection was closed", {}, 0};

// A member whose driver writes down what it is to do, and whose clock the test turns.
struct HubMemberCoreTest : public ::testing::Test {
  static HubMemberRules rules() {
    HubMemberRules rules;
    rules.connect_timeout = 60s;
    rules.join_timeout = 100s;
    rules.offer.role = "default";
    rules.offer.host = "b";
    return rules;
  }

  // What has been done since the last call: "dial 60 3", "join running", "hang up", ...
  std::string done() {
    std::string text;
    const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
    for (const Core::Step& step : core.take_steps()) {
      if (const auto* dial = std::get_if<Core::Dial>(&step))
        add("dial " + std::to_string(dial->patience / 1s) + " " +
            std::to_string(dial->refused_patience / 1s));
      if (std::holds_alternative<Core::StopDialing>(step)) add("stop dialing");
      if (std::holds_alternative<Core::HangUp>(step)) add("hang up");
      if (std::holds_alternative<Core::OpenStore>(step)) add("open store");
      if (const auto* send = std::get_if<Core::Send>(&step)) add(name(send->frame));
    }
    return text;
  }
  static std::string name(const Frame& frame) {
    if (const auto* join = std::get_if<Join>(&frame)) {
      if (join->holds == Join::Holds::running) return "join running";
      if (join->holds == Join::Holds::finished) return "join finished";
      return "join";
    }
    if (const auto* leave = std::get_if<Leave>(&frame)) {
      if (leave->how == Leave::How::returns) return "leave returns";
      if (leave->how == Leave::How::stopped) return "leave stopped";
      return leave->how == Leave::How::failed ? "leave failed" : "leave succeeded";
    }
    if (const auto* failed = std::get_if<Failed>(&frame)) return "failed " + failed->line;
    if (std::holds_alternative<Beat>(frame)) return "beat";
    if (std::holds_alternative<Finish>(frame)) return "finish";
    if (std::holds_alternative<TellReport>(frame)) return "report";
    if (const auto* offer = std::get_if<StoreOffer>(&frame))
      return "store " + offer->addr + offer->error;
    return "other";
  }
  // What the agent has heard since the last call.
  std::string heard() {
    std::string text;
    const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
    while (auto outcome = core.next_outcome()) {
      const auto words = [](const Status& status) {
        return status ? std::string("ok") : status.error().message;
      };
      if (const auto* to = std::get_if<Core::Connected>(&*outcome))
        add("connected: " + words(to->status));
      if (const auto* to = std::get_if<Core::Joined>(&*outcome)) {
        if (!to->round) add("joined: " + to->round.error().message);
        if (to->round)
          add(*to->round ? "joined round " + std::to_string((*to->round)->number) : "spare");
      }
      if (const auto* to = std::get_if<Core::AllFinished>(&*outcome))
        add("finished: " + words(to->status));
      if (const auto* to = std::get_if<Interruption>(&*outcome))
        add((to->kind == Interruption::Kind::end ? "end: " : "rejoin: ") + to->why);
      if (const auto* to = std::get_if<Core::Reported>(&*outcome))
        add("reports " + std::to_string(to->reports.size()));
      if (std::holds_alternative<Core::Departed>(*outcome)) add("left");
    }
    return text;
  }

  void link() { core.connected(1000ms, 5000ms, 2, now); }
  void open() {
    core.connect("h:1", now);
    link();
    EXPECT_EQ(done(), "dial 60 60");
    EXPECT_EQ(heard(), "connected: ok");
  }
  void place(std::int64_t number) {
    Placed placed;
    placed.round.number = number;
    core.take(placed, now);
  }
  void join(std::int64_t number = 0) {
    core.join(now);
    EXPECT_EQ(done(), "join");
    place(number);
    EXPECT_EQ(heard(), "joined round " + std::to_string(number));
  }
  void in_a_round() {
    open();
    join();
  }
  // Time goes by in steps, and the hub is heard in each, unless it is silent.
  void pass(std::chrono::milliseconds time, bool silent = false) {
    for (; time > 0ms; time -= 500ms) {
      now += 500ms;
      if (!silent && core.link() == Core::Link::up) core.bytes_came(now);
      core.tick("W", now);
    }
  }

  Core core{rules()};
  io::TimePoint now{1000s};
};

// --- the way in ---

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
  place(9);  // nobody asked
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
  core.lost(kClosed, now);  // the hub closes it afterwards: nothing is made anew
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
  core.lost(kClosed, now);
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
  EXPECT_EQ(
      heard(),
      "rejoin: lost the connection to the rendezvous at h:1: nothing was heard of it for 5.0 s");
  EXPECT_EQ(done(), "beat, beat, beat, beat, leave returns, hang up, dial 100 3");
  EXPECT_EQ(core.phase(), Phase::over);
  core.join(now);
  link();
  EXPECT_EQ(done(), "join");
  place(1);
  core.finish();
  heard();
  pass(10s, true);
  EXPECT_EQ(heard(), "");  // its workers have ended well
  EXPECT_EQ(core.phase(), Phase::finishing);
}

// This process was stopped: what the hub has sent meanwhile lies there unread.
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

// --- the end ---

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
  EXPECT_EQ(heard(), "");  // in a later turn
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

}  // namespace
}  // namespace lockstep::rendezvous::hub
