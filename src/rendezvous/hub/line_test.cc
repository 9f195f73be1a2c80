// The order in which nodes look for the hub.
#include "rendezvous/hub/line.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace lockstep::rendezvous::hub {
namespace {

Charter charter(const std::vector<std::uint32_t>& places, std::uint32_t first) {
  Charter of;
  of.term = 1;
  for (const std::uint32_t place : places) {
    Nonce agent{};
    agent[0] = static_cast<std::uint8_t>(place + 1);
    of.now.all.push_back({agent, place});
    if (place == first) of.now.first = agent;
  }
  of.before = of.now;
  return of;
}

// Returns the places in order: "1 own(2) 0".
std::string walk(const LineFacts& facts, const Charter& of) {
  std::string text;
  for (const LineStop& stop : walk_line(facts, of)) {
    EXPECT_GT(stop.patience.count(), 0);
    const std::string place = std::to_string(stop.place);
    text += (text.empty() ? "" : " ") + (stop.own ? "own(" + place + ")" : place);
  }
  return text;
}

TEST(Line, TheNextOfTheListThatVotesHosts) {
  const Charter three = charter({0, 1, 2}, 0);
  EXPECT_EQ(walk({.own = 1, .listed = 3, .lost = 0}, three), "own(1) 2 0");
  EXPECT_EQ(walk({.own = 2, .listed = 3, .lost = 0}, three), "1 own(2) 0");
  EXPECT_EQ(walk({.own = 0, .listed = 3, .lost = 1}, charter({0, 1, 2}, 1)), "own(0) 2 1");
}

// With equal times the survivors of three nodes, both with a pass of 4.7 s, missed each other for
// ever if one began 2.5 to 3.2 s after the other. Node 1 waits longer than node 2 is elsewhere.
TEST(Line, TheFirstWaitsUntilTheNextMustHaveCome) {
  const Charter three = charter({0, 1, 2}, 0);
  std::chrono::milliseconds waits{0};
  std::chrono::milliseconds elsewhere{0};
  for (const LineStop& stop : walk_line({.own = 1, .listed = 3, .lost = 0}, three))
    if (stop.own) waits = stop.patience;
  for (const LineStop& stop : walk_line({.own = 2, .listed = 3, .lost = 0}, three))
    if (stop.place != 1) elsewhere += stop.patience;
  EXPECT_GE(waits, elsewhere);
}

// The others stay in its hub until that hub closes, so most nodes come together there.
TEST(Line, TheFirstOfTheLineIsTheMeetingPlace) {
  const Charter five = charter({0, 1, 2, 3, 4}, 0);
  for (const std::uint32_t own : {1U, 2U, 3U, 4U}) {
    const auto stops = walk_line({.own = own, .listed = 5, .lost = 0}, five);
    for (const LineStop& stop : stops) {
      EXPECT_EQ(stop.first, stop.place == 1) << own;
      const bool waits_long = stop.patience.count() > 10'000;
      EXPECT_EQ(waits_long, stop.own && own == 1) << own;
    }
  }
}

// A node that comes late must find the hub wherever it is.
TEST(Line, ANewNodeAsksEachHostOfALongList) {
  EXPECT_EQ(walk_line({.own = 3, .listed = 64, .lost = 0}, {}).size(), 63U);
  EXPECT_EQ(walk_line({.own = 3, .listed = 5'000, .lost = 0}, {}).size(), 64U);
}

// Nodes give up after 30 s.
TEST(Line, APassAlongManyHostsEndsBeforeANodeGivesUp) {
  std::vector<std::uint32_t> places(63);
  std::iota(places.begin(), places.end(), 0U);
  for (const std::uint32_t own : {1U, 40U, 63U}) {
    std::chrono::milliseconds sum{0};
    for (const LineStop& stop :
         walk_line({.own = own, .listed = 64, .lost = 0, .closed = true}, charter(places, 0)))
      if (!stop.own) sum += stop.patience;
    EXPECT_LT(sum.count(), 25'000) << own;
  }
}

TEST(Line, AHostWhoseConnectionWasClosedMayStillBeThere) {
  EXPECT_EQ(walk({.own = 1, .listed = 3, .lost = 0, .closed = true}, charter({0, 1, 2}, 0)),
            "0 own(1) 2 0");
}

TEST(Line, ANodeWithoutAVoteHostsNothing) {
  EXPECT_EQ(walk({.own = 3, .listed = 4, .lost = 0}, charter({0, 1, 2}, 0)), "1 2 0");
  EXPECT_EQ(walk({.own = 9, .listed = 4, .lost = 0}, charter({0, 1, 2}, 0)), "1 2 0 3");
}

TEST(Line, WhereTheOthersCanBeNoQuorumNobodyHosts) {
  EXPECT_EQ(walk({.own = 1, .listed = 3, .lost = 0}, charter({0, 1}, 0)), "0 2");
}

TEST(Line, OneOfTwoHostsMayHaveMissedTheCharterWithAThirdVote) {
  EXPECT_EQ(walk({.own = 1, .listed = 2, .lost = 0}, charter({0, 1}, 0)), "0 own(1) 0");
  EXPECT_EQ(walk({.own = 1, .listed = 2, .lost = 0}, charter({0}, 0)), "0 own(1) 0");
}

TEST(Line, AHubThatGaveUpHostsAgainOnlyAfterTheOthers) {
  EXPECT_EQ(walk({.own = 0, .listed = 3, .lost = 0}, charter({0, 1, 2}, 0)), "1 2 own(0)");
}

TEST(Line, BeforeTheJobHasBegunTheFirstHostIsTheOne) {
  EXPECT_EQ(walk({.own = 1, .listed = 4, .lost = 0}, {}), "0 2 3");
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
