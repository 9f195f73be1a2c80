// Counts of nodes by stage and rank, changes of connections, and the names in messages.
#include "rendezvous/hub/roster.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;

constexpr Time kStart{1h};

Nonce id(std::uint8_t number) {
  Nonce agent{};
  agent[0] = number;
  return agent;
}

Roster::Member& add(Roster& roster, std::uint8_t number, Roster::Stage stage,
                    const std::string& name) {
  auto& member = roster.add(number, id(number), name, Ms(0));
  roster.set_stage(member, stage);
  return member;
}

TEST(Roster, CountsFollowStagesRanksAndLosses) {
  Roster roster;
  auto& a = add(roster, 1, Roster::Stage::joined, "a");
  auto& b = add(roster, 2, Roster::Stage::joined, "b");
  add(roster, 3, Roster::Stage::idle, "c");
  roster.set_stage(a, Roster::Stage::placed);
  roster.set_rank(a, 0);
  roster.set_rank(b, 1);
  roster.set_rank(b, 2);  // a change counts once
  EXPECT_EQ(roster.count(Roster::Stage::joined), 1U);
  EXPECT_EQ(roster.count(Roster::Stage::placed), 1U);
  EXPECT_EQ(roster.ranked(), 2U);
  EXPECT_EQ(roster.taking_part(), 2U);
  EXPECT_EQ(roster.viable(), 2U);
  EXPECT_EQ(roster.remove(1)->name, "a");
  EXPECT_EQ(roster.count(Roster::Stage::placed), 0U);
  EXPECT_EQ(roster.ranked(), 1U);
  EXPECT_FALSE(roster.remove(1));
  roster.clear_ranks();
  EXPECT_EQ(roster.ranked(), 0U);
  EXPECT_EQ(roster.at(2).rank(), -1);
}

TEST(Roster, ANodeOnANewConnectionKeepsAllButItsPeerId) {
  Roster roster;
  roster.set_rank(add(roster, 1, Roster::Stage::joined, "a"), 4);
  roster.move(1, 9, 70ms);
  EXPECT_EQ(roster.find(1), nullptr);
  EXPECT_EQ(roster.of(id(1)), roster.find(9));
  EXPECT_EQ(roster.at(9).peer, 9U);
  EXPECT_EQ(roster.at(9).rank(), 4);
  EXPECT_EQ(roster.at(9).heard, 70ms);
  EXPECT_EQ(roster.count(Roster::Stage::joined), 1U);
  roster.remove(9);
  EXPECT_EQ(roster.of(id(1)), nullptr);
}

TEST(Roster, ANodeExpectedBackIsViableUntilItIsOverdueOrHere) {
  Roster roster;
  for (const std::uint8_t number : {1, 2}) {
    roster.expect_back(add(roster, number, Roster::Stage::placed, "n" + std::to_string(number)),
                       kStart + number * 1s);
    roster.remove(number);
  }
  EXPECT_EQ(roster.viable(), 2U);
  EXPECT_EQ(roster.away_names(), (std::vector<std::string>{"n1", "n2"}));
  EXPECT_FALSE(roster.take_overdue(kStart + 999ms));
  EXPECT_EQ(roster.take_overdue(kStart + 1s), "n1");
  EXPECT_FALSE(roster.take_overdue(kStart + 1s));
  EXPECT_EQ(roster.viable(), 1U);
  add(roster, 2, Roster::Stage::idle, "n2");
  EXPECT_EQ(roster.viable(), 0U);
  EXPECT_FALSE(roster.take_overdue(kStart + 9s));
}

TEST(Roster, ANodeIsSilentFromTheBound) {
  Roster roster;
  add(roster, 1, Roster::Stage::idle, "a");
  add(roster, 2, Roster::Stage::idle, "b");
  roster.hear(2, 1ms);
  EXPECT_EQ(roster.silent(5s, 5s), std::vector<PeerId>{1});
  roster.hear(7, 5s);  // has left
}

TEST(Roster, ANodeRankOfAnIdleNodeIsFree) {
  Roster roster;
  auto& a = add(roster, 1, Roster::Stage::joined, "a");
  auto& b = add(roster, 2, Roster::Stage::idle, "b");
  a.offer.node_rank = b.offer.node_rank = 3;
  EXPECT_EQ(roster.with_node_rank(3, b), &a);
  EXPECT_EQ(roster.with_node_rank(3, a), nullptr);
  EXPECT_EQ(roster.with_node_rank(-1, b), nullptr);
}

TEST(Roster, LongListsOfNamesAreCut) {
  Roster roster;
  std::vector<std::string> expected;
  for (std::uint8_t number = 1; number <= 10; ++number) {
    const std::string name = "n" + std::to_string(number);
    auto& member = add(roster, number, Roster::Stage::joined, "");
    member.offer.host = name;
    expected.push_back(name + ".cluster");
    expected.push_back("absent" + std::to_string(number));
  }
  roster.set_rank(roster.at(2), 0);
  EXPECT_EQ(roster.names({Roster::Stage::joined}, false),
            "n1, n2, n3, n4, n5, n6, n7, n8 and 2 more");
  EXPECT_EQ(roster.names({Roster::Stage::joined}, true), "n2");
  EXPECT_EQ(roster.absent(expected, 10),
            " (absent1, absent2, absent3, absent4, absent5, absent6, absent7, absent8 and 2 more)");
  EXPECT_EQ(roster.absent(expected, 9), "");  // the names do not match
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
