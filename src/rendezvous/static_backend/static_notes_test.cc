#include "rendezvous/static_backend/static_notes.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::static_backend {
namespace {

TEST(StaticNotes, FreePlacesComeBack) {
  const FreePlaces free = {{1, "node 1 (n1) is gone"}, {7, "node 7 has left"}};
  EXPECT_EQ(decode_open(encode_open(free)), free);
  EXPECT_TRUE(decode_open(encode_open({})).empty());
}

TEST(StaticNotes, Nonsense) {
  for (const char* text : {"", "7", "{}", R"({"free": 1})", R"({"free": [1, [], ["1", "a"]]})",
                           R"({"free": [[-1, "a"], [4294967296, "a"], [1, 2], [1.5, "a"]]})"})
    EXPECT_TRUE(decode_open(text).empty()) << text;
  EXPECT_EQ(decode_open(R"({"free": [[1, "a\u001b[2J"]]})").at(1), "a\\x1b[2J");
}

TEST(StaticNotes, WhatIsOverAndWhatOnlyBeginsAgain) {
  const auto next = decode_over(encode_over({"node 1 is gone", true}));
  EXPECT_TRUE(next.next);
  EXPECT_EQ(next.why, "node 1 is gone");
  const auto over = decode_over(encode_over({"node 0 has given up", false}));
  EXPECT_FALSE(over.next);
  EXPECT_EQ(over.why, "node 0 has given up");
  EXPECT_FALSE(decode_over(R"({"next": 1, "why": "a"})").next);
}

TEST(StaticNotes, KeysOfARoundAreItsOwn) {
  const StaticKeys keys("job");
  EXPECT_EQ(keys.round_prefix(0, true), "job/");
  EXPECT_EQ(keys.round_prefix(3, false), "job/");
  EXPECT_EQ(keys.round_prefix(3, true), "job/lockstep.3/");
  EXPECT_EQ(keys.alive(1, 0), "job/lockstep/alive/1");
  EXPECT_EQ(keys.alive(1, 2), "job/lockstep/alive/1.2");
}

TEST(StaticNotes, PeopleReadWhichNodeToStart) {
  EXPECT_EQ(free_places_text({}), "");
  EXPECT_EQ(free_places_text({{2, "node 2 (n2) is gone"}}),
            "; a new node may replace a lost one: node 2 (n2) is gone: start one "
            "with --node-rank 2");
  FreePlaces many;
  for (int rank = 1; rank < 9; ++rank)
    many[rank] = "gone";
  EXPECT_TRUE(free_places_text(many).ends_with(", and 5 more"));
}

}  // namespace
}  // namespace lockstep::rendezvous::static_backend
