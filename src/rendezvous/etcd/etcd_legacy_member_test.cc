// Members against one state in memory, with a clock set by hand.
#include "rendezvous/etcd/etcd_legacy_member.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace lockstep::rendezvous::etcd {
namespace {
using namespace std::chrono_literals;
using Kind = LegacyStep::Kind;
using Status = LegacyState::Status;

class EtcdLegacyMember : public ::testing::Test {
 protected:
  struct Node {
    LegacyMember member;
    LegacyStep last;
    bool settled = false;  // done, closed, released or timed out
  };

  Node& node(const std::string& name) {
    return nodes.emplace_back(
        Node{LegacyMember(rules, {name, name + "-id"}, "/p/run_j"), {}, false});
  }
  void begin(Node& node) {
    node.settled = false;
    node.member.begin(now);
  }
  // Carries a step out like the driver, at once and without failures.
  Kind step(Node& node) {
    node.last = node.member.next(state, now);
    switch (node.last.kind) {
      case Kind::create:
        state = LegacyState{.status = Status::joinable, .version = std::to_string(++counter)};
        break;
      case Kind::claim:
        leases.push_back(node.member.lease_key());
        [[fallthrough]];
      case Kind::replace:
        state = node.last.state;
        ttl = node.last.ttl;
        node.member.took_effect();
        break;
      case Kind::destroy:
        state.reset();
        break;
      case Kind::check:
        if (!missing_leases(*state, leases).empty()) state.reset();
        break;
      case Kind::count:
        node.member.lost(missing_leases(node.last.state, leases).size(), now);
        break;
      case Kind::watch:
        break;
      default:
        node.settled = true;
    }
    return node.last.kind;
  }
  void steps(std::initializer_list<Node*> all, int rounds = 20) {
    for (int i = 0; i < rounds; ++i)
      for (Node* node : all)
        if (!node->settled) step(*node);
  }

  LegacyRules rules{.min_nodes = 2, .max_nodes = 2, .join_timeout = 60s, .last_call_timeout = 30s};
  LegacyMember::TimePoint now{1000s};
  std::deque<Node> nodes;
  std::optional<LegacyState> state;
  std::optional<std::chrono::seconds> ttl;
  std::vector<std::string> leases;
  int counter = 0;
};

TEST_F(EtcdLegacyMember, TwoMeet) {
  Node& a = node("a");
  Node& b = node("b");
  begin(a);
  begin(b);
  EXPECT_EQ(step(a), Kind::create);
  EXPECT_EQ(step(a), Kind::replace);
  EXPECT_FALSE(ttl);
  EXPECT_EQ(step(a), Kind::watch);
  EXPECT_EQ(step(b), Kind::replace);
  EXPECT_EQ(state->status, Status::frozen);
  EXPECT_EQ(ttl, 10s);
  EXPECT_EQ(step(b), Kind::claim);
  EXPECT_EQ(state->keep_alives, std::vector<std::string>{"/p/run_j/rdzv/v_1/rank_1"});
  EXPECT_EQ(step(b), Kind::watch);
  EXPECT_EQ(step(a), Kind::claim);
  EXPECT_EQ(state->status, Status::final);
  EXPECT_FALSE(ttl);
  EXPECT_EQ(step(a), Kind::done);
  EXPECT_EQ(step(b), Kind::done);
  EXPECT_EQ(a.member.rank(), 0U);
  EXPECT_EQ(b.member.rank(), 1U);
  EXPECT_TRUE(state->all_ours());
}

// A stranger has written a round with this node's lease but without its rank.
TEST_F(EtcdLegacyMember, ARoundWithoutThePlaceOfThisNodeIsNotDone) {
  Node& a = node("a");
  Node& b = node("b");
  begin(a);
  begin(b);
  step(a);
  step(a);
  step(b);
  EXPECT_EQ(step(b), Kind::claim);
  ASSERT_EQ(state->keep_alives, std::vector<std::string>{"/p/run_j/rdzv/v_1/rank_1"});
  state->status = Status::final;
  state->participants = 1;
  EXPECT_NE(step(b), Kind::done);
}

TEST_F(EtcdLegacyMember, TheLastCallIsTheOneThatMakesTheMinimumFull) {
  rules.max_nodes = 3;
  Node& a = node("a");
  Node& b = node("b");
  for (Node* each : {&a, &b})
    begin(*each);
  steps({&a});
  steps({&b});
  EXPECT_EQ(state->status, Status::joinable);
  EXPECT_EQ(a.last.until, now + 60s);
  EXPECT_EQ(b.last.until, now + 5s);
  now += 5s;
  EXPECT_EQ(step(b), Kind::replace);  // renews the round's TTL
  EXPECT_EQ(state->status, Status::joinable);
  EXPECT_EQ(ttl, 10s);
  now += 25s;
  EXPECT_EQ(step(a), Kind::watch);
  EXPECT_EQ(step(b), Kind::replace);
  EXPECT_EQ(state->status, Status::frozen);
  steps({&a, &b});
  EXPECT_EQ(state->status, Status::final);
  EXPECT_EQ(state->participants, 2U);
}

TEST_F(EtcdLegacyMember, ALateNodeIsAnnouncedAndTheNextRoundHasThemAll) {
  rules = {.min_nodes = 1, .max_nodes = 2, .join_timeout = 60s, .last_call_timeout = 0s};
  Node& a = node("a");
  begin(a);
  steps({&a});
  ASSERT_EQ(a.last.kind, Kind::done);
  Node& b = node("b");
  begin(b);
  EXPECT_EQ(step(b), Kind::replace);
  EXPECT_EQ(state->waiting, 1U);
  EXPECT_EQ(state->status, Status::final);
  EXPECT_EQ(step(b), Kind::check);
  EXPECT_FALSE(b.member.spare());
  begin(a);
  EXPECT_EQ(step(a), Kind::destroy);
  steps({&a, &b});
  EXPECT_EQ(state->version, "2");
  EXPECT_EQ(state->participants, 2U);
  EXPECT_EQ(a.last.kind, Kind::done);
  EXPECT_EQ(b.last.kind, Kind::done);
}

TEST_F(EtcdLegacyMember, BesideTorchrunARoundIsLeftByAnnouncement) {
  Node& a = node("a");
  Node& b = node("b");
  for (Node* each : {&a, &b})
    begin(*each);
  steps({&a, &b});
  state->agents.erase(1);  // looks like a torchrun agent
  begin(a);
  EXPECT_EQ(step(a), Kind::replace);
  EXPECT_EQ(state->waiting, 1U);  // although the round is full
  EXPECT_EQ(step(a), Kind::check);
  EXPECT_EQ(step(a), Kind::check);
  EXPECT_EQ(state->waiting, 1U);
}

TEST_F(EtcdLegacyMember, ASpareTellsNobodyAndTakesALostOnesPlace) {
  Node& a = node("a");
  Node& b = node("b");
  Node& spare = node("spare");
  for (Node* each : {&a, &b})
    begin(*each);
  steps({&a, &b});
  ASSERT_EQ(state->status, Status::final);
  begin(spare);
  steps({&spare});
  EXPECT_EQ(spare.last.kind, Kind::check);
  EXPECT_EQ(state->waiting, 0U);
  now += 100s;
  EXPECT_EQ(step(spare), Kind::check);  // a spare has no timeout
  std::erase(leases, b.member.lease_key());
  EXPECT_EQ(step(spare), Kind::check);
  EXPECT_FALSE(state);
  EXPECT_EQ(step(spare), Kind::count);
  EXPECT_EQ(step(spare), Kind::watch);  // lets a go first
  begin(a);
  steps({&spare, &a});
  EXPECT_EQ(spare.last.kind, Kind::done);
  EXPECT_EQ(a.last.kind, Kind::done);
}

TEST_F(EtcdLegacyMember, SparesLetSurvivorsInButNotForEver) {
  Node& a = node("a");
  Node& b = node("b");
  Node& spare = node("spare");
  Node& second = node("second");
  for (Node* each : {&a, &b})
    begin(*each);
  steps({&a, &b});
  begin(spare);
  begin(second);
  steps({&spare, &second});
  state.reset();  // a failure: both nodes will join again
  steps({&spare, &second});
  EXPECT_FALSE(state);
  begin(a);
  begin(b);
  steps({&spare, &second, &a, &b});
  EXPECT_EQ(a.last.kind, Kind::done);
  EXPECT_EQ(b.last.kind, Kind::done);
  EXPECT_TRUE(spare.member.spare());
  state.reset();  // this time neither node comes
  steps({&spare, &second});
  now += 41s;
  steps({&spare, &second});
  EXPECT_EQ(spare.last.kind, Kind::done);
  EXPECT_EQ(second.last.kind, Kind::done);
}

TEST_F(EtcdLegacyMember, ClosedReleasesSparesAndRefusesOthers) {
  Node& a = node("a");
  Node& b = node("b");
  Node& spare = node("spare");
  Node& late = node("late");
  for (Node* each : {&a, &b})
    begin(*each);
  steps({&a, &b});
  begin(spare);
  steps({&spare});
  state->status = Status::closed;
  EXPECT_EQ(step(spare), Kind::released);
  begin(late);
  EXPECT_EQ(step(late), Kind::closed);
}

TEST_F(EtcdLegacyMember, ALostAnswerDoesNotJoinTwice) {
  Node& a = node("a");
  begin(a);
  step(a);
  a.last = a.member.next(state, now);
  ASSERT_EQ(a.last.kind, Kind::replace);
  state = a.last.state;  // the write succeeded, but its answer was lost
  EXPECT_EQ(step(a), Kind::watch);
  EXPECT_EQ(state->participants, 1U);
  Node& b = node("b");
  begin(b);
  step(b);
  a.last = a.member.next(state, now);
  ASSERT_EQ(a.last.kind, Kind::claim);
  leases.push_back(a.member.lease_key());
  state = a.last.state;
  EXPECT_EQ(step(a), Kind::watch);
  EXPECT_EQ(state->keep_alives.size(), 1U);
  steps({&a, &b});
  EXPECT_EQ(a.last.kind, Kind::done);
}

TEST_F(EtcdLegacyMember, ALostRaceIsTriedAgain) {
  Node& a = node("a");
  Node& b = node("b");
  begin(a);
  begin(b);
  step(a);
  a.last = a.member.next(state, now);
  EXPECT_EQ(step(b), Kind::replace);  // b was faster: a's compare-and-swap fails
  steps({&a, &b});
  EXPECT_EQ(a.member.rank(), 1U);
  EXPECT_EQ(b.member.rank(), 0U);
  EXPECT_EQ(state->status, Status::final);
}

TEST_F(EtcdLegacyMember, ARoundThatComesToNothingIsJoinedAnew) {
  Node& a = node("a");
  begin(a);
  steps({&a});
  ASSERT_EQ(state->status, Status::joinable);
  state.reset();  // expired
  steps({&a});
  EXPECT_EQ(state->version, "2");
  EXPECT_EQ(state->participants, 1U);
  now += 61s;
  EXPECT_EQ(step(a), Kind::timed_out);
}

TEST(EtcdLegacyLeases, MissingOnesByRank) {
  LegacyState state{.status = Status::final, .version = "1", .participants = 3};
  state.keep_alives = {"/p/rank_2", "/p/rank_0", "/p/rank_1", "/p/odd"};
  EXPECT_EQ(missing_leases(state, {"/p/rank_0", "/p/kv"}), (std::vector<std::size_t>{2, 1, 3}));
}

}  // namespace
}  // namespace lockstep::rendezvous::etcd
