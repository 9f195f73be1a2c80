// Rounds of the `lockstep` backend: hosting, admission, failures, departures.
#include "hub_backend_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;
using namespace testing;  // NOLINT
using Kind = Interruption::Kind;

TEST_F(HubBackendTest, TwoMeetInFourMessagesAndEndTogether) {
  Agent& a = open("a");
  Agent& b = open("b");
  EXPECT_TRUE(a.backend->hosts());
  EXPECT_FALSE(b.backend->hosts());
  EXPECT_EQ(b.backend->address(), "addr-b");
  meet({&a, &b});
  EXPECT_EQ(a.round().group_rank, 0);
  EXPECT_EQ(b.round().group_rank, 1);
  EXPECT_EQ(b.round().master_addr, "addr-a");
  EXPECT_EQ(b.round().master_port, 7000);
  EXPECT_EQ(b.backend->member().messages(), 4U);
  finish(a);
  pass(400ms);  // longer than the allowed silence: beats go on in the barrier
  EXPECT_FALSE(a.finished);
  EXPECT_TRUE(a.interruptions.empty());
  finish(b);
  until([&] { return a.finished && b.finished; });
  EXPECT_TRUE(*a.finished);
  leave(a, Departure::succeeded);
  pass(100ms);
  EXPECT_FALSE(a.left);  // the host waits for its guest
  leave(b, Departure::succeeded);
  until([&] { return a.left && b.left; });
}

TEST_F(HubBackendTest, AFailureIsToldAndTheNextRoundCountsIt) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  b.backend->tell_failure("rank 1 on b failed (exitcode: 9)", false);
  until([&] { return !a.interruptions.empty(); });
  EXPECT_EQ(a.interruptions[0].kind, Kind::rejoin);
  EXPECT_EQ(a.interruptions[0].why, "rank 1 on b failed (exitcode: 9)");
  EXPECT_TRUE(b.interruptions.empty());
  meet({&b, &a});
  EXPECT_EQ(b.round().number, 1);
  EXPECT_EQ(b.round().restarts, 1);
  EXPECT_EQ(b.round().group_rank, 1);
}

TEST_F(HubBackendTest, AFinalFailureEndsAndReportsAreExchanged) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  b.backend->tell_failure("rank 1 on b failed", true);
  until([&] { return !a.interruptions.empty(); });
  EXPECT_EQ(a.interruptions[0].kind, Kind::end);
  for (Agent* agent : {&a, &b}) {
    const std::string name = agent == &a ? "a" : "b";
    // Larger than a greeting may be, in both directions.
    const std::string text = "report of " + name + std::string(10'000, '.');
    agent->backend->exchange_reports({name, agent->round().group_rank, text}, 5s,
                                     [agent](auto reports) { agent->reports = reports; });
  }
  until([&] { return a.reports && b.reports; });
  for (const Agent* agent : {&a, &b}) {
    ASSERT_EQ(agent->reports->size(), 2U);
    EXPECT_TRUE(agent->reports->front().text.starts_with("report of b."));
  }
  leave(a, Departure::failed);
  leave(b, Departure::failed);
  until([&] { return a.left && b.left; });
}

TEST_F(HubBackendTest, ALostGuestIsReplacedByTheSpareWhichIsToldWhenItIsNotNeeded) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  Agent& spare = open("spare");
  join(spare);
  until([&] {
    return spare.backend->waiting_for().find("this one is a spare") != std::string::npos;
  });
  b.backend.reset();
  until([&] { return !a.interruptions.empty(); });
  EXPECT_EQ(a.interruptions[0].why, "b is gone: the connection was closed");
  join(a);
  until([&] { return a.placed() && spare.placed(); });
  EXPECT_EQ(spare.round().group_rank, 1);
  EXPECT_EQ(spare.round().restarts, 0);
  Agent& second = open("second");
  join(second);
  finish(a);
  finish(spare);
  until([&] { return second.joined.has_value(); });
  EXPECT_FALSE(second.joined->value());
}

TEST_F(HubBackendTest, AHostThatIsGoneEndsItForTheGuest) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  a.backend.reset();
  until([&] { return !b.interruptions.empty(); });
  EXPECT_EQ(b.interruptions[0].kind, Kind::end);
  EXPECT_TRUE(b.interruptions[0].why.starts_with("the host of the rendezvous at 127.0.0.1:"))
      << b.interruptions[0].why;
  EXPECT_NE(b.interruptions[0].why.find("Connection refused"), std::string::npos);
  join(b);
  until([&] { return b.joined.has_value(); });
  EXPECT_FALSE(*b.joined);
  leave(b, Departure::failed);
  until([&] { return b.left.has_value(); });
}

TEST_F(HubBackendTest, AHostThatIsGoneInTheBarrierIsAnErrorAndNoInterruption) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  finish(b);
  pass(20ms);
  a.backend.reset();
  until([&] { return b.finished.has_value(); });
  EXPECT_FALSE(*b.finished);
  EXPECT_TRUE(b.interruptions.empty());
}

TEST_F(HubBackendTest, WhatIsAskedWhenTheHostIsGoneIsAnsweredInTheNextTurn) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  a.backend.reset();
  until([&] { return !b.interruptions.empty(); });
  finish(b);
  EXPECT_FALSE(b.finished);  // not inside the call
  until([&] { return b.finished.has_value(); });
  EXPECT_FALSE(*b.finished);
  b.backend->exchange_reports({"b", 1, "own"}, 60s, [&b](auto all) { b.reports = all; });
  EXPECT_FALSE(b.reports);
  until([&] { return b.reports.has_value(); });
  ASSERT_EQ(b.reports->size(), 1U);
  EXPECT_EQ(b.reports->front().text, "own");
}

TEST_F(HubBackendTest, OnlyAGuestCanGiveWayOrLeaveTheOthers) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  EXPECT_FALSE(a.backend->give_way(true));
  EXPECT_FALSE(a.backend->others_can_go_on());
  EXPECT_TRUE(b.backend->give_way(true));
  EXPECT_FALSE(b.backend->give_way(false));
  EXPECT_TRUE(b.backend->others_can_go_on()) << "another node may take the place";
}

TEST_F(HubBackendTest, TooFewNodesCanGoOnOnlyWithAnother) {
  settings.offer.replacement = false;
  const struct {
    std::size_t min_nodes;
    bool has_spares;
    bool can;
  } rows[] = {{2, false, false}, {1, false, true}, {2, true, true}};
  for (const auto& row : rows) {
    settings.min_nodes = row.min_nodes;
    settings.has_spares = row.has_spares;
    Agent& a = open("a");
    Agent& b = open("b");
    meet({&a, &b});
    EXPECT_EQ(b.backend->others_can_go_on(), row.can) << row.min_nodes << row.has_spares;
    agents.clear();
  }
}

TEST_F(HubBackendTest, AStoppedHostTellsItsGuests) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  leave(a, Departure::stopped);
  until([&] { return !b.interruptions.empty(); });
  EXPECT_EQ(b.interruptions[0].kind, Kind::end);
  EXPECT_EQ(b.interruptions[0].why, "a, the host of the rendezvous, was stopped");
  EXPECT_FALSE(a.left);
  leave(b, Departure::failed);
  until([&] { return a.left && b.left; });
}

TEST_F(HubBackendTest, TokensMustBeTheSame) {
  settings.token = "secret";
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  settings.token = "other";
  Agent& c = start("c");
  settings.token = std::nullopt;
  Agent& d = start("d");
  until([&] { return c.opened && d.opened; });
  ASSERT_FALSE(*c.opened);
  EXPECT_EQ(c.opened->error().code, Errc::denied);
  EXPECT_NE(
      c.opened->error().message.find("the job token of c does not match the rendezvous 'job'"),
      std::string::npos);
  ASSERT_FALSE(*d.opened);
  EXPECT_NE(
      d.opened->error().message.find("the rendezvous 'job' wants a job token, and d has none"),
      std::string::npos);
  EXPECT_TRUE(a.interruptions.empty());
}

TEST_F(HubBackendTest, AHostWithoutATokenRefusesOneWithOne) {
  open("a");
  settings.token = "secret";
  Agent& b = start("b");
  until([&] { return b.opened.has_value(); });
  ASSERT_FALSE(*b.opened);
  EXPECT_NE(b.opened->error().message.find("b has a job token, and the host"), std::string::npos);
}

TEST_F(HubBackendTest, AClosedRendezvousSaysSo) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  finish(a);
  finish(b);
  until([&] { return a.finished && b.finished; });
  Agent& late = open("late");
  join(late);
  until([&] { return late.joined.has_value(); });
  ASSERT_FALSE(*late.joined);
  EXPECT_EQ(late.joined->error().code, Errc::canceled);
  EXPECT_TRUE(late.joined->error().message.starts_with("the rendezvous 'job' is closed"));
}

TEST_F(HubBackendTest, ThePortOfAJobThatIsEndingIsTakenOver) {
  settings.connect_timeout = settings.join_timeout = 60s;
  Agent& old = open("old");
  settings.run_id = "next";
  Agent& a = start("a");
  // The backend's own text also names the holder of the port, which takes a scan of all processes.
  until([&] {
    return a.backend->member().waiting_for().find("'next', but this is another one") !=
           std::string::npos;
  });
  old.backend.reset();
  until([&] { return a.opened.has_value(); });
  EXPECT_TRUE(*a.opened) << a.opened->error().message;
  EXPECT_TRUE(a.backend->hosts());
}

TEST_F(HubBackendTest, ADeclaredGuestWaitsForTheHostAndSaysWhatItTried) {
  settings.is_host = false;
  Agent& b = start("b");
  until([&] { return b.backend->waiting_for().find("Connection refused") != std::string::npos; });
  settings.is_host = std::nullopt;
  Agent& a = open("a");
  until([&] { return b.opened.has_value(); });
  EXPECT_TRUE(*b.opened);
  meet({&a, &b});
  EXPECT_EQ(b.round().group_rank, 1);
}

// The node's guests look for the node that leads now.
TEST_F(HubBackendTest, AHostThatIsReplacedWhileItLeavesDoesNotWait) {
  settings.hosts = {{"127.0.0.1", port}, {"127.0.0.1", port + 1}};
  settings.is_host = true;
  settings.close_timeout = 60s;  // longer than until() waits
  Agent& a = open("a");
  HubMember guest(loop, member_settings(settings, random_nonce()));
  bool reached = false;
  guest.set_witness(Witness(1));
  guest.connect("127.0.0.1", port, [&](const Result<void>& done) { reached = done.has_value(); });
  until([&] { return reached; });
  leave(a, Departure::stopped);
  pass(100ms);
  EXPECT_FALSE(a.left);
  HubMember late(loop, member_settings(settings, random_nonce()));
  Witness witness(1);
  Charter other;
  other.term = 1'000'000;
  witness.take(other);
  late.set_witness(witness);
  late.connect("127.0.0.1", port, [](const Result<void>&) {});
  until([&] { return a.left.has_value(); });
}

TEST_F(HubBackendTest, NobodyHosts) {
  settings.is_host = false;
  settings.connect_timeout = 100ms;
  Agent& b = start("b");
  until([&] { return b.opened.has_value(); });
  ASSERT_FALSE(*b.opened);
  EXPECT_NE(b.opened->error().message.find("Connection refused"), std::string::npos);
}

// Connecting and joining share one deadline.
TEST_F(HubBackendTest, WaitingForTheHostCountsAsJoining) {
  settings.is_host = false;
  settings.connect_timeout = 60s;
  settings.join_timeout = 1s;
  Agent& nobody = start("nobody");
  until([&] { return nobody.opened.has_value(); });
  EXPECT_FALSE(*nobody.opened);
  Agent& b = start("b");
  pass(600ms);
  settings.join_timeout = 60s;
  settings.is_host = true;
  open("a");
  until([&] { return b.opened.has_value(); });
  join(b);
  until([&] { return b.joined.has_value(); });
  ASSERT_FALSE(*b.joined);
  EXPECT_NE(b.joined->error().message.find("timed out after 0 s"), std::string::npos)
      << b.joined->error().message;
}

// --- one endpoint: the nodes learn from the hub where another may open ---

class OneEndpointTest : public HubBackendTest {
 protected:
  OneEndpointTest() {
    address = "127.0.0.2";  // other than kOwnHub
    settings.learns_hosts = true;
    settings.max_nodes = 3;
  }
  // Like a process that is killed.
  static void kill(Agent& agent) { agent.backend.reset(); }
  void join_when_interrupted(std::initializer_list<Agent*> all) {
    for (Agent* agent : all) {
      until([&] { return !agent->interruptions.empty(); });
      join(*agent);
    }
  }
};

TEST_F(OneEndpointTest, AnotherNodeHostsWhenTheFirstIsGone) {
  Agent& a = open("a");
  Agent& b = open("b");
  Agent& c = open("c");
  meet({&a, &b, &c});
  kill(a);
  join_when_interrupted({&b, &c});
  until([&] { return b.placed() && c.placed(); });
  EXPECT_EQ(b.round().group_world_size, 2);
  EXPECT_EQ(b.round().number, 1);
  EXPECT_NE(b.backend->hosts(), c.backend->hosts());
}

TEST_F(OneEndpointTest, AFirstHostThatIsStartedAgainIsCalledToItsJob) {
  settings.min_nodes = 3;
  Agent& a = open("a");
  Agent& b = open("b");
  Agent& c = open("c");
  meet({&a, &b, &c});
  kill(a);
  join_when_interrupted({&b, &c});
  until([&] { return b.backend->hosts() || c.backend->hosts(); });
  Agent& again = open("a2");
  EXPECT_TRUE(again.backend->hosts());
  join(again);
  until([&] { return again.placed() && b.placed() && c.placed(); });
  EXPECT_FALSE(again.backend->hosts());
  EXPECT_EQ(again.round().number, 1);
}

// It is there before another node hosts, and hears of its job from the nodes that look for a hub.
TEST_F(OneEndpointTest, AFirstHostThatIsStartedAgainAtOnceWaitsForTheCall) {
  settings.min_nodes = 3;
  Agent& a = open("a");
  Agent& b = open("b");
  Agent& c = open("c");
  meet({&a, &b, &c});
  kill(a);
  Agent& again = open("a2");
  join(again);
  join_when_interrupted({&b, &c});
  until([&] { return again.placed() && b.placed() && c.placed(); });
  EXPECT_EQ(again.round().number, 1);
}

// The two are enough for a round before the call comes. Two rounds of one job must not go on.
TEST_F(OneEndpointTest, AYoungRoundAtTheEndpointEndsForTheJobThatGoesOn) {
  settings.max_nodes = 2;
  Agent& a = open("a");
  Agent& b = open("b");
  Agent& spare = open("c");
  meet({&a, &b});
  join(spare);
  kill(a);
  until([&] { return !b.interruptions.empty(); });
  join(b);
  until([&] { return b.placed() && spare.placed(); });
  Agent& again = open("a2");
  Agent& other = open("d");
  join(again);
  join(other);
  until([&] { return !again.interruptions.empty() && !other.interruptions.empty(); });
  EXPECT_EQ(again.interruptions.front().kind, Interruption::Kind::rejoin);
  join(again);
  join(other);
  const HubServer* hub = b.backend->hosts() ? b.backend->server() : spare.backend->server();
  until([&] { return hub->counts().guests == 4; });
  EXPECT_FALSE(again.placed());
  EXPECT_TRUE(b.interruptions.empty());
}

TEST_F(OneEndpointTest, ANodeThatComesLaterIsToldTheWay) {
  settings.min_nodes = 3;
  settings.max_nodes = 4;
  Agent& a = open("a");
  Agent& b = open("b");
  Agent& c = open("c");
  meet({&a, &b, &c});
  kill(a);
  Agent& again = open("a2");
  join(again);
  join_when_interrupted({&b, &c});
  until([&] { return again.placed() && b.placed() && c.placed(); });
  Agent& d = open("d");
  join(d);
  join_when_interrupted({&again, &b, &c});
  until([&] { return d.placed(); });
  EXPECT_EQ(d.round().group_world_size, 4);
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
