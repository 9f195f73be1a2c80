#include "rendezvous/dynamic/seats.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::dynamic {
namespace {

Node ours(const std::string& addr, const Badge& badge = {}) {
  return {addr, 1, local_id_of(badge)};
}
using Seats = std::map<Node, std::int64_t>;

TEST(Seats, ByAddressAtFirst) {
  Seats seats{{ours("c"), 0}, {ours("a"), 0}, {ours("b"), 0}};
  assign_seats(seats, RankOrder::address);
  EXPECT_EQ(seats, (Seats{{ours("a"), 0}, {ours("b"), 1}, {ours("c"), 2}}));
}

TEST(Seats, SurvivorsStayAndANewNodeTakesTheFreePlace) {
  Seats seats{{ours("a"), 0},
              {ours("b"), 1},
              {ours("d"), 3}};  // d had rank 2, b had 0, the node of rank 1 is gone
  assign_seats(seats, RankOrder::address);
  EXPECT_EQ(seats, (Seats{{ours("a"), 1}, {ours("b"), 0}, {ours("d"), 2}}));
}

TEST(Seats, FewerNodesMoveOnlyWhoMust) {
  Seats seats{{ours("a"), 3}, {ours("b"), 1}};  // a had 2 of 3
  assign_seats(seats, RankOrder::address);
  EXPECT_EQ(seats, (Seats{{ours("a"), 1}, {ours("b"), 0}}));
}

TEST(Seats, TheHostOrTheNodeRankFirst) {
  const Node host = ours("c", {.host = true, .node_rank = {}});
  Seats by_host{{ours("a"), 0}, {host, 0}};
  assign_seats(by_host, RankOrder::host);
  EXPECT_EQ(by_host.at(host), 0);
  const Node first = ours("z", {.host = false, .node_rank = 0});
  const Node second = ours("a", {.host = false, .node_rank = 1});
  Seats by_rank{{second, 0}, {first, 0}, {ours("b"), 0}};
  assign_seats(by_rank, RankOrder::node_rank);
  EXPECT_EQ(by_rank, (Seats{{first, 0}, {second, 1}, {ours("b"), 2}}));
}

TEST(Seats, AnyNumberIsTaken) {
  Seats seats{{ours("a"), INT64_MIN}, {ours("b"), INT64_MAX}, {ours("c"), -1}};
  assign_seats(seats, RankOrder::address);
  EXPECT_EQ(seats, (Seats{{ours("a"), 0}, {ours("b"), 1}, {ours("c"), 2}}));
}

TEST(Seats, BesideTorchrunItIsTheAddressAlone) {
  const Node torchrun{"b", 7, 0};
  Seats seats{{ours("c", {.host = true, .node_rank = {}}), 1}, {torchrun, 0}, {ours("a"), 0}};
  assign_seats(seats, RankOrder::host);
  EXPECT_EQ(seats.at(torchrun), 1);
  EXPECT_EQ(seats.at(ours("a")), 0);
}

}  // namespace
}  // namespace lockstep::rendezvous::dynamic
