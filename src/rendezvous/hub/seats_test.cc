// Who gets which rank: kept seats, newcomers, the host, orders, and seats of rounds of another
// coordinator.
#include "rendezvous/hub/seats.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

namespace lockstep::rendezvous::hub {
namespace {

Nonce id(char name) {
  Nonce agent{};
  agent[0] = static_cast<std::uint8_t>(name);
  return agent;
}

struct SeatsTest : ::testing::Test {
  static Seats make(std::size_t max_nodes, RankOrder order = RankOrder::host) {
    CoordinatorSettings settings;
    settings.host = id('h');
    settings.max_nodes = max_nodes;
    settings.order = order;
    return Seats(settings);
  }
  // Returns the nodes with these names, in the order of their arrival.
  Seats::Nodes nodes(const std::string& names) {
    Seats::Nodes found;
    for (const char name : names) {
      auto& node = known[name];
      node.agent = id(name);
      if (node.arrival == 0) node.arrival = known.size();
      if (node.offer.address.empty()) node.offer.address = std::string(1, name);
      found.push_back(&node);
    }
    return found;
  }
  static std::string names(const Seats::Nodes& nodes) {
    std::string text;
    for (const auto* node : nodes)
      text += static_cast<char>(node->agent[0]);
    return text;
  }

  std::map<char, Roster::Member> known;
};

TEST_F(SeatsTest, TheHostIsFirstAndTheOthersFollowTheirAddresses) {
  EXPECT_EQ(names(make(4).fill(nodes("cbha"))), "habc");
  EXPECT_EQ(names(make(4, RankOrder::address).fill(nodes("cbha"))), "abch");
}

TEST_F(SeatsTest, EarlyNodesAndTheHostHavePrecedence) {
  EXPECT_EQ(names(make(3).fill(nodes("cbah"))), "hbc");
}

TEST_F(SeatsTest, ANodeThatGivesWayLosesItsSeatToASpare) {
  Seats seats = make(3);
  seats.assign(nodes("hab"));
  known['a'].offer.gives_way = true;
  EXPECT_EQ(names(seats.fill(nodes("habc"))), "hcb");
  EXPECT_EQ(names(seats.fill(nodes("hab"))), "hab") << "without a spare it stays";
  known['b'].offer.gives_way = true;
  EXPECT_EQ(names(seats.fill(nodes("habc"))), "hcb") << "one spare fills one seat";
  known['h'].offer.gives_way = true;
  EXPECT_EQ(names(seats.fill(nodes("habcd"))), "hcd") << "the host stays";
}

TEST_F(SeatsTest, NodesKeepTheirSeatsAndNewcomersFillTheGaps) {
  Seats seats = make(5);
  seats.assign(nodes("habc"));
  EXPECT_EQ(seats.rank_of(id('b')), 2);
  EXPECT_FALSE(seats.rank_of(id('x')));
  EXPECT_EQ(names(seats.fill(nodes("cbhx"))), "hxbc");
  EXPECT_EQ(names(seats.fill(nodes("cbhxyz"))), "hxbcy");
  EXPECT_EQ(names(seats.fill(nodes("cb"))), "bc");  // gaps close up
  EXPECT_EQ(seats.rank_of(id('c')), 3) << "fill() changes nothing";
}

TEST_F(SeatsTest, ExplicitNodeRanksBeatKeptSeats) {
  Seats seats = make(3, RankOrder::node_rank);
  seats.assign(nodes("abc"));
  known['a'].offer.node_rank = 2;
  known['b'].offer.node_rank = 0;
  EXPECT_EQ(names(seats.fill(nodes("abc"))), "bac");  // c has none
}

TEST_F(SeatsTest, AVacantSeatIsTakenOnce) {
  Seats seats = make(3);
  seats.assign_vacant(3);
  EXPECT_TRUE(seats.take(1, id('a')));
  EXPECT_TRUE(seats.take(1, id('a')));
  EXPECT_FALSE(seats.take(1, id('b')));
  EXPECT_FALSE(seats.take(3, id('b')));
  EXPECT_FALSE(seats.take(-1, id('b')));
  EXPECT_EQ(seats.vacant(), (std::vector<int>{0, 2}));
}

TEST_F(SeatsTest, InheritsTheLatestRoundThatNodesTellOf) {
  Seats seats = make(3);
  EXPECT_FALSE(seats.inherit(nodes("xy")));
  EXPECT_TRUE(seats.empty());
  for (const auto& [name, round, rank, restarts] :
       std::initializer_list<std::tuple<char, int, int, int>>{
           {'a', 5, 0, 9}, {'b', 6, 2, 1}, {'c', 6, 0, 2}}) {
    (void)nodes({name});
    known[name].offer.last_round = round;
    known[name].offer.last_rank = rank;
    known[name].offer.restarts = restarts;
  }
  const auto past = seats.inherit(nodes("abcx"));
  ASSERT_TRUE(past);
  EXPECT_EQ(past->round, 6);
  EXPECT_EQ(past->restarts, 2);
  EXPECT_EQ(names(seats.fill(nodes("abc"))), "cba");
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
