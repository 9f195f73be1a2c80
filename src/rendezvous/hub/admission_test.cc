// Which joins fit, and how long the join of a host with the same node rank is held.
#include "rendezvous/hub/admission.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;

struct AdmissionTest : ::testing::Test {
  AdmissionTest() {
    CoordinatorSettings settings;
    settings.run_id = "job";
    settings.min_nodes = settings.max_nodes = 2;
    admission.emplace(settings);
  }
  static Join join(const std::string& host, const std::string& program, int node_rank = -1) {
    Join join;
    join.host = host;
    join.address = "addr-" + host;
    join.min_nodes = join.max_nodes = 2;
    join.node_rank = node_rank;
    join.launched.name = program;
    return join;
  }
  Roster::Member& add(PeerId peer, const Join& offer, Roster::Stage stage) {
    Nonce agent{};
    agent[0] = static_cast<std::uint8_t>(peer);
    auto& member = roster.add(peer, agent, offer.host, Ms(0));
    member.offer = offer;
    roster.set_stage(member, stage);
    return member;
  }

  std::optional<Admission> admission;
  Roster roster;
};

TEST_F(AdmissionTest, AnotherProgramOfTheSameRoleIsRefused) {
  add(1, join("a", "train.py"), Roster::Stage::placed);
  auto& newcomer = add(2, {}, Roster::Stage::idle);
  EXPECT_FALSE(admission->compare(newcomer, join("b", "train.py"), roster).refusal);
  EXPECT_TRUE(admission->compare(newcomer, join("b", "eval.py"), roster).refusal);
  Join reader = join("b", "eval.py");
  reader.role = "reader";
  EXPECT_FALSE(admission->compare(newcomer, reader, roster).refusal);
  EXPECT_FALSE(admission->compare(newcomer, join("b", ""), roster).refusal);
}

TEST_F(AdmissionTest, ANodeOfAnEarlierRoundMakesStrangersGo) {
  add(1, join("x", "eval.py"), Roster::Stage::joined);
  add(2, join("y", "eval.py"), Roster::Stage::joined);
  auto& back = add(3, {}, Roster::Stage::idle);
  Join offer = join("a", "train.py");
  offer.last_round = 4;
  auto result = admission->compare(back, offer, roster);
  EXPECT_FALSE(result.refusal);
  ASSERT_EQ(result.strangers.size(), 2U);
  EXPECT_EQ(result.strangers[1].first, 2U);
  // A node with a place is no stranger.
  roster.set_stage(roster.at(1), Roster::Stage::placed);
  EXPECT_TRUE(admission->compare(back, offer, roster).refusal);
}

TEST_F(AdmissionTest, TheJoinOfTheSameHostIsHeldUntilItsOldConnectionIsLost) {
  add(1, join("a", "train.py", 0), Roster::Stage::placed);
  auto& again = add(2, {}, Roster::Stage::idle);
  Join offer = join("a", "train.py", 0);
  EXPECT_TRUE(admission->hold(again, offer, roster, 3s));
  EXPECT_EQ(admission->holding(), std::vector<PeerId>{2});
  auto released = admission->release(2);
  ASSERT_TRUE(released);
  EXPECT_EQ(released->host, "a");
  EXPECT_TRUE(admission->holding().empty());
  EXPECT_TRUE(admission->hold(again, *released, roster, 4s));  // no sign of life since
  released = admission->release(2);
  roster.remove(1);
  EXPECT_FALSE(admission->hold(again, *released, roster, 5s));
  EXPECT_FALSE(Admission::same_node_rank(again, *released, roster));
}

TEST_F(AdmissionTest, TheJoinOfTheSameHostIsRefusedOnceItsOldConnectionSendsBytes) {
  add(1, join("a", "train.py", 0), Roster::Stage::placed);
  auto& second = add(2, {}, Roster::Stage::idle);
  Join offer = join("a", "train.py", 0);
  roster.hear(1, 3s);  // came at the same time as the join
  EXPECT_TRUE(admission->hold(second, offer, roster, 3s));
  auto released = admission->release(2);
  roster.hear(1, 3002ms);
  EXPECT_FALSE(admission->hold(second, *released, roster, 4s));
  EXPECT_EQ(Admission::same_node_rank(second, *released, roster)->text,
            "two nodes have --node-rank 0: a (addr-a) and a (addr-a)");
}

TEST_F(AdmissionTest, AnotherHostAndALostNodeAreNotHeld) {
  add(1, join("a", "train.py", 0), Roster::Stage::placed);
  auto& other = add(2, {}, Roster::Stage::idle);
  Join offer = join("b", "train.py", 0);
  EXPECT_FALSE(admission->hold(other, offer, roster, 3s));
  offer = join("a", "train.py", 0);
  EXPECT_TRUE(admission->hold(other, offer, roster, 3s));
  admission->forget(2);
  EXPECT_TRUE(admission->holding().empty());
  EXPECT_FALSE(admission->release(2));
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
