// The steps of one node, with times and counts invented by the test.
#include "rendezvous/static_backend/static_member.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::static_backend {
namespace {
using namespace std::chrono_literals;
using Kind = StaticStep::Kind;
using Round = KeyValueRound::Phase;
using Phase = StaticMember::Phase;
using Kinds = std::vector<Kind>;

constexpr io::TimePoint kNow{1h};

Kinds kinds(const StaticSteps& steps) {
  Kinds made;
  made.reserve(steps.size());
  for (const auto& step : steps)
    made.push_back(step.kind);
  return made;
}

StaticRules rules(int node_rank) {
  return {.node_rank = node_rank,
          .host = "n" + std::to_string(node_rank),
          .store = "m:1",
          .heartbeat_interval = 1s,
          .heartbeat_attempts = 2,
          .timeout = 60s,
          .close_timeout = 30s};
}

Assignment made(std::vector<bool> ours = {true, true, true}) {
  Assignment assignment;
  assignment.hosts = {"n0", "n1", "n2"};
  assignment.hosts.resize(ours.size());
  assignment.ours = std::move(ours);
  return assignment;
}

// Returns a member in its first round.
StaticMember member(int node_rank, std::vector<bool> ours = {true, true, true}) {
  StaticMember node(rules(node_rank));
  node.opened(std::nullopt);
  EXPECT_EQ(kinds(node.join(kNow)), Kinds{Kind::agree});
  const bool all = std::find(ours.begin(), ours.end(), false) == ours.end();
  EXPECT_EQ(kinds(node.began(made(std::move(ours)), kNow)), all ? Kinds{Kind::beat} : Kinds{});
  return node;
}

// Returns the guests' heartbeat counts; a guest without an entry has stopped at 1.
StaticMember::Counts counts(const std::map<int, std::string>& alive) {
  return [alive](int rank, std::int64_t since) -> std::optional<std::string> {
    const auto at = alive.find(rank);
    if (at != alive.end()) return at->second;
    return since == 0 ? std::optional<std::string>("1") : std::nullopt;
  };
}

constexpr StaticMember::Around kRunning{.round = Round::running, .awaits_replacement = true};
constexpr StaticMember::Around kLastRestart{.round = Round::running};
constexpr StaticMember::Around kAgreeing{.round = Round::agreeing, .awaits_replacement = true};

// Lets node 1 fall silent.
StaticSteps miss_node_1(StaticMember& host, const StaticMember::Around& around) {
  StaticSteps steps;
  for (int turn = 0; turn < 4 && steps.size() < 2; ++turn) {
    host.beat_answered();
    steps = host.beat(around, counts({{2, std::to_string(turn)}}), kNow);
  }
  return steps;
}

TEST(StaticMember, TheFirstRoundBeginsWhenAllHaveComeAndLaterOnesWhenTheHostSaysSo) {
  StaticMember host = member(0);
  const auto opens = host.join(kNow);
  EXPECT_EQ(kinds(opens), (Kinds{Kind::open_round, Kind::agree}));
  EXPECT_EQ(opens[0].round, 1);
  EXPECT_TRUE(opens[0].free.empty());
  StaticMember guest = member(1);
  EXPECT_EQ(kinds(guest.join(kNow)), Kinds{Kind::find_round});
  EXPECT_EQ(guest.phase(), Phase::seeking);
  EXPECT_EQ(guest.gives_up_at(Round::none), kNow + 60s);
  EXPECT_EQ(kinds(guest.round_found({})), Kinds{Kind::agree});
  EXPECT_TRUE(guest.began(made(), kNow).empty()) << "its heart beats already";
}

TEST(StaticMember, BesideTorchrunThereAreNoNotes) {
  StaticMember host = member(0, {true, false, true});
  EXPECT_EQ(kinds(host.join(kNow)), Kinds{Kind::agree});
  EXPECT_TRUE(host.tell_stop(kRunning, true).empty());
  EXPECT_EQ(kinds(host.leave(Departure::failed, kRunning, true, kNow)),
            (Kinds{Kind::end_beats, Kind::stay}));
}

TEST(StaticMember, ASilentNodeIsReplacedWhileThereAreRestarts) {
  StaticMember host = member(0);
  const auto steps = miss_node_1(host, kRunning);
  ASSERT_EQ(kinds(steps), (Kinds{Kind::beat, Kind::replace}));
  EXPECT_EQ(steps[1].node, 1);
  EXPECT_EQ(steps[1].text, "node 1 (n1) is gone (no heartbeat for 2 s)");
  const auto opens = host.join(kNow);
  EXPECT_EQ(opens[0].free, (FreePlaces{{1, steps[1].text}}));
  EXPECT_EQ(host.pulses().since(1), 1);
  for (int turn = 0; turn < 5; ++turn) {
    host.beat_answered();
    EXPECT_EQ(kinds(host.beat(kAgreeing, counts({{2, std::to_string(turn)}}), kNow)),
              Kinds{Kind::beat})
        << "nobody is missed twice";
  }
  host.began(made(), kNow);
  EXPECT_TRUE(host.free().empty());
}

TEST(StaticMember, ASilentNodeEndsTheJobWithoutRestarts) {
  StaticMember host = member(0);
  const auto steps = miss_node_1(host, kLastRestart);
  ASSERT_EQ(kinds(steps), (Kinds{Kind::beat, Kind::end_round}));
  EXPECT_EQ(steps[1].node, 1);
}

// The leaving node is a survivor or a replacement.
TEST(StaticMember, ANodeThatGoesBeforeTheRoundBeginsMakesAnother) {
  StaticMember host = member(0);
  host.join(kNow);
  const auto steps = miss_node_1(host, kAgreeing);
  ASSERT_EQ(kinds(steps), (Kinds{Kind::beat, Kind::say_void, Kind::start_over}));
  EXPECT_EQ(steps[1].round, 1);
  const auto opens = host.join(kNow);
  EXPECT_EQ(opens[0].round, 2);
  EXPECT_EQ(opens[0].free.size(), 1U);
  host.beat_answered();
  host.beat(kAgreeing, counts({{1, "1"}, {2, "x"}}), kNow);
  EXPECT_FALSE(host.pulses().vacant(1));
  StaticSteps again;
  for (int turn = 0; turn < 2; ++turn) {
    host.beat_answered();
    again = host.beat(kAgreeing, counts({{1, "1"}, {2, std::to_string(turn)}}), kNow);
  }
  EXPECT_EQ(kinds(again), (Kinds{Kind::beat, Kind::say_void, Kind::start_over}));
}

TEST(StaticMember, WithoutRestartsItIsNotWaitedForEither) {
  StaticMember host = member(0);
  host.join(kNow);
  const auto steps = miss_node_1(host, {.round = Round::agreeing});
  ASSERT_EQ(kinds(steps), (Kinds{Kind::beat, Kind::say_over, Kind::fail_join}));
  EXPECT_EQ(steps[2].error->message, "node 1 (n1) is gone (no heartbeat for 2 s)");
}

// The guests have their ranks and begin.
TEST(StaticMember, ARoundWhoseRanksAreHandedOutIsNotTakenBack) {
  StaticMember host = member(0);
  host.join(kNow);
  host.all_are_there();
  EXPECT_EQ(kinds(miss_node_1(host, kAgreeing)), Kinds{Kind::beat});
}

TEST(StaticMember, ANodeThatSaidItGoesIsReplacedAtOnce) {
  StaticMember host = member(0);
  host.told({1, "node 1 (n1) has left: it was told to stop", false, 1, true});
  EXPECT_EQ(host.join(kNow)[0].free.at(1), "node 1 (n1) has left: it was told to stop");
  StaticMember other = member(0);
  other.told({1, "gone", true, 0, true});
  other.told({9, "gone", false, 0, true});
  other.told({0, "gone", false, 0, true});
  EXPECT_TRUE(other.join(kNow)[0].free.empty());
}

TEST(StaticMember, NobodyComesInTheLostOnesPlace) {
  StaticMember host = member(0);
  miss_node_1(host, kRunning);
  host.join(kNow);
  const auto steps = host.ranks_failed({Errc::timeout, "wait timeout", {}, 0});
  ASSERT_EQ(kinds(steps), (Kinds{Kind::say_over, Kind::fail_join}));
  EXPECT_EQ(steps[1].error->message,
            "timed out after 60 s: no other node has taken the place of node 1 (n1)");
}

TEST(StaticMember, ANewcomerWaitsForAFreePlaceAndClaimsIt) {
  StaticMember node(rules(1));
  node.opened(4);
  EXPECT_FALSE(node.has_place());
  EXPECT_EQ(node.join(kNow)[0].round, 4);
  EXPECT_EQ(node.round_found({{2, "gone"}})[0].round, 5) << "another place is free";
  EXPECT_EQ(node.round_found({{1, "gone"}})[0].kind, Kind::claim);
  EXPECT_EQ(kinds(node.claimed(false)), Kinds{Kind::find_round}) << "another one was first";
  node.round_found({{1, "gone"}});
  EXPECT_EQ(kinds(node.claimed(true)), (Kinds{Kind::beat, Kind::agree}));
  EXPECT_EQ(node.since(), 6);
  EXPECT_TRUE(node.has_place());
}

TEST(StaticMember, ANewcomerWithoutAPlaceTouchesNothingOfItsHolder) {
  StaticMember node(rules(1));
  node.opened(0);
  EXPECT_EQ(node.join(kNow)[0].round, 1);
  EXPECT_TRUE(node.tell_stop({}, false).empty());
  const auto late = node.out_of_time();
  ASSERT_EQ(kinds(late), Kinds{Kind::fail_join});
  EXPECT_EQ(late[0].error->message,
            "timed out after 60 s: the job at m:1 has a living node with node rank 1");
  EXPECT_EQ(kinds(node.leave(Departure::failed, {}, false, kNow)),
            (Kinds{Kind::end_beats, Kind::go}));
}

TEST(StaticMember, ANodeThatWasGivenUpClaimsItsOwnPlace) {
  StaticMember guest = member(1);
  guest.join(kNow);
  EXPECT_EQ(kinds(guest.round_found({{1, "node 1 is gone"}})), Kinds{Kind::claim});
}

TEST(StaticMember, AVoidRoundIsFollowedToTheNext) {
  StaticMember guest = member(1);
  guest.join(kNow);
  EXPECT_EQ(kinds(guest.over_told({"node 2 is gone", true})), Kinds{Kind::find_round});
  EXPECT_EQ(guest.round(), 2);
  guest.round_found({});
  EXPECT_EQ(kinds(guest.over_told({"node 2 is gone", true})), Kinds{Kind::start_over});
  EXPECT_EQ(guest.join(kNow)[0].round, 3);
  EXPECT_EQ(guest.over_told({"node 0 has given up", false})[0].error->message,
            "node 0 has given up");
}

// --- the end ---

TEST(StaticMember, TheStoreDecidesWhetherAllEndedWell) {
  StaticMember host = member(0);
  EXPECT_EQ(kinds(host.barrier({})), Kinds{Kind::conclude});
  EXPECT_EQ(kinds(host.concluded()), Kinds{Kind::end_barrier});
  StaticMember beside = member(0, {true, false});
  EXPECT_EQ(kinds(beside.barrier({})), Kinds{Kind::end_barrier});
  EXPECT_TRUE(host.barrier(fail(Errc::timeout, "late"))[0].error);
  EXPECT_TRUE(host.barrier(fail(Errc::unavailable, "lost")).empty());
}

TEST(StaticMember, ALostStoreEndsTheRoundAfterTheLastWords) {
  StaticMember guest = member(1);
  EXPECT_EQ(kinds(guest.lose({Errc::unavailable, "closed", {}, 0}, false, kNow)),
            (Kinds{Kind::end_beats, Kind::hear_out}));
  EXPECT_TRUE(guest.lose({Errc::unavailable, "again", {}, 0}, false, kNow).empty());
  const auto steps = guest.last_words_over(kRunning);
  ASSERT_EQ(kinds(steps), Kinds{Kind::interrupt});
  EXPECT_EQ(steps[0].text, "the store of node rank 0 at m:1 is lost: closed");
  EXPECT_EQ(kinds(guest.join(kNow)), Kinds{Kind::fail_join});
}

TEST(StaticMember, ALostStoreInTheBarrierMayBeTheGoodEnd) {
  const StaticMember::Around barrier{.round = Round::barrier};
  StaticMember guest = member(1);
  guest.lose({Errc::unavailable, "closed", {}, 0}, false, kNow);
  EXPECT_EQ(kinds(guest.last_words_over(barrier)), Kinds{Kind::end_barrier});
  StaticMember warned = member(1);
  warned.lose({Errc::unavailable, "closed", {}, 0}, false, kNow);
  EXPECT_EQ(kinds(warned.last_words_over({.round = Round::barrier, .alarmed = true})),
            Kinds{Kind::interrupt});
  StaticMember done = member(1);
  done.barrier({});
  done.lose({Errc::unavailable, "closed", {}, 0}, false, kNow);
  EXPECT_FALSE(done.last_words_over(barrier)[0].error);
}

// The other nodes may have given this node up and left.
TEST(StaticMember, ALostStoreInTheBarrierIsNoGoodEndAfterALongSleep) {
  const StaticMember::Around barrier{.round = Round::barrier};
  for (const bool long_sleep : {false, true}) {
    StaticMember guest = member(1);
    guest.lose({Errc::unavailable, "closed", {}, 0}, false, kNow + (long_sleep ? 2s : 1s));
    EXPECT_EQ(kinds(guest.last_words_over(barrier)),
              Kinds{long_sleep ? Kind::interrupt : Kind::end_barrier});
  }
}

TEST(StaticMember, ABeatOnTimeIsNoLongSleepHoweverImpatientTheOthersAre) {
  StaticRules impatient = rules(1);
  impatient.heartbeat_attempts = 1;
  StaticMember guest(impatient);
  guest.opened(std::nullopt);
  guest.join(kNow);
  guest.began(made(), kNow);
  guest.beat_answered();
  EXPECT_EQ(kinds(guest.beat(kRunning, nullptr, kNow + 1s)), Kinds{Kind::beat});
  guest.beat_answered();
  guest.lose({Errc::unavailable, "closed", {}, 0}, false, kNow + 1s);
  EXPECT_EQ(kinds(guest.last_words_over({.round = Round::barrier})), Kinds{Kind::end_barrier});
}

// A host that wakes up later must not believe that the job ended well.
TEST(StaticMember, AFrozenHostIsToldBeforeAGuestGivesUp) {
  for (const bool ended_well : {false, true}) {
    StaticMember guest = member(1);
    EXPECT_EQ(kinds(guest.beat(kRunning, nullptr, kNow)), Kinds{Kind::beat});
    EXPECT_EQ(kinds(guest.beat(kRunning, nullptr, kNow)), (Kinds{Kind::end_beats, Kind::hear_out}));
    EXPECT_EQ(kinds(guest.last_words_over({.round = Round::barrier})), Kinds{Kind::say_farewell});
    EXPECT_EQ(guest.phase(), Phase::losing);
    EXPECT_EQ(kinds(guest.farewell_said(ended_well)),
              Kinds{ended_well ? Kind::end_barrier : Kind::interrupt});
    EXPECT_TRUE(guest.farewell_said(false).empty());
  }
}

TEST(StaticMember, AnAnsweredHeartGoesOn) {
  StaticMember guest = member(1);
  for (int turn = 0; turn < 5; ++turn) {
    EXPECT_EQ(kinds(guest.beat(kRunning, nullptr, kNow)), Kinds{Kind::beat});
    guest.beat_answered();
  }
}

TEST(StaticMember, AStoppedNodeIsReplacedAndAStoppedHostIsNot) {
  StaticMember guest = member(1);
  const auto told = guest.tell_stop(kRunning, true);
  ASSERT_EQ(kinds(told), Kinds{Kind::tell_gone});
  EXPECT_FALSE(told[0].final);
  EXPECT_EQ(told[0].text, "node 1 (n1) has left: it was told to stop");
  EXPECT_TRUE(member(1).tell_stop(kLastRestart, true)[0].final);
  EXPECT_TRUE(member(0).tell_stop(kRunning, true)[0].final);
  EXPECT_EQ(kinds(guest.tell_stop({}, false)), (Kinds{Kind::end_beats, Kind::say_left}));
  EXPECT_EQ(kinds(member(0).tell_stop({}, false)), Kinds{Kind::say_over});
}

TEST(StaticMember, LeavingSaysSoAndTheHostStays) {
  StaticMember guest = member(1);
  EXPECT_EQ(kinds(guest.leave(Departure::succeeded, {}, false, kNow)),
            (Kinds{Kind::end_beats, Kind::say_left, Kind::ask_and_leave}));
  EXPECT_EQ(kinds(guest.answered()), Kinds{Kind::go});
  EXPECT_TRUE(guest.answered().empty());
  StaticMember host = member(0);
  EXPECT_EQ(kinds(host.leave(Departure::failed, kRunning, true, kNow)),
            (Kinds{Kind::end_beats, Kind::tell_gone, Kind::ask_and_leave}));
  EXPECT_EQ(kinds(host.answered()), Kinds{Kind::stay});
  EXPECT_EQ(host.stay_until(), kNow + 30s);
  StaticMember stopped = member(0);
  stopped.join(kNow);
  EXPECT_EQ(kinds(stopped.leave(Departure::stopped, kAgreeing, false, kNow)),
            (Kinds{Kind::say_over, Kind::end_beats, Kind::ask_and_leave}));
  EXPECT_EQ(stopped.stay_until(), kNow + 1s);
}

}  // namespace
}  // namespace lockstep::rendezvous::static_backend
