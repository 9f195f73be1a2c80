#include "recorder/collective_facts.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace lockstep::recorder {
namespace {

Dump fixture(const std::string& name) {
  std::ifstream file(std::string(LOCKSTEP_FIXTURES) + "/" + name, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return read_dump(bytes).value();
}

std::vector<std::string> sentences(const std::map<int, Dump>& dumps) {
  std::vector<std::string> texts;
  for (const GroupStuck& stuck : merge_dumps(dumps))
    texts.push_back(stuck_sentence(stuck));
  return texts;
}

Entry entry(std::int64_t sequence, bool active, const std::string& name = "nccl:all_reduce") {
  return {.group = "0",
          .group_words = "default_pg",
          .sequence = sequence,
          .name = name,
          .sizes = "[[4]]",
          .types = "Float",
          .bytes = 268'435'456,
          .created_ns = sequence,
          .active = active};
}
Dump of(std::vector<Entry> entries) {
  return {.entries = std::move(entries)};
}

// Recorded by four gloo workers of PyTorch 2.14.1; rank 2 leaves out the third all_reduce.
TEST(CollectiveFacts, ARankSkipsACollective) {
  std::map<int, Dump> dumps;
  for (int rank = 0; rank < 4; ++rank)
    dumps[rank] = fixture("skip." + std::to_string(rank) + ".json");
  EXPECT_EQ(sentences(dumps), std::vector<std::string>{
                                  "rank 2 never entered #3 gloo:all_reduce of default_pg, 16 B"});
  dumps[2] = fixture("skip.2.pickle");
  EXPECT_EQ(sentences(dumps), std::vector<std::string>{
                                  "rank 2 never entered #3 gloo:all_reduce of default_pg, 16 B"});
}

// The same, but rank 2 calls all_gather instead.
TEST(CollectiveFacts, ARankCallsAnotherCollective) {
  std::map<int, Dump> dumps;
  for (int rank = 0; rank < 4; ++rank)
    dumps[rank] = fixture("wrong." + std::to_string(rank) + ".json");
  EXPECT_EQ(sentences(dumps),
            std::vector<std::string>{
                "mismatch in #3 of default_pg: gloo:all_gather (rank 2) against gloo:all_reduce "
                "(ranks 0-1, 3)"});
}

TEST(CollectiveFacts, AllAreInTheSameCollective) {
  EXPECT_EQ(sentences({{0, of({entry(5, true)})}, {1, of({entry(5, true)})}}),
            std::vector<std::string>{
                "ranks 0-1 entered #5 nccl:all_reduce of default_pg, 268 MB, and none has left: "
                "network or library"});
}

TEST(CollectiveFacts, AMemberWithoutADumpMayBeTheOneAtFault) {
  const std::map<int, Dump> dumps = {{0, of({entry(5, true)})}, {1, of({entry(5, true)})}};
  const auto stuck = merge_dumps(dumps, 4).at(0);
  EXPECT_EQ(stuck.silent, 2);
  EXPECT_EQ(stuck_sentence(stuck),
            "ranks 0-1 entered #5 nccl:all_reduce of default_pg, 268 MB, and none has left; "
            "nothing is known of 2 other ranks");
  Dump listed = of({entry(5, true)});
  listed.entries[0].group_words = "undefined";
  listed.members["0"] = {0, 7};
  EXPECT_EQ(merge_dumps({{0, listed}}, 4).at(0).silent, 1);
}

TEST(CollectiveFacts, WordsForATable) {
  const Entry other = entry(5, true, "nccl:all_gather");
  const auto same = merge_dumps({{0, of({entry(5, true)})}, {1, of({entry(4, false)})}}).at(0);
  EXPECT_EQ(collective_words(same, 0), "all_reduce #5 of default_pg, 268 MB");
  const auto mixed = merge_dumps({{0, of({entry(5, true)})}, {1, of({other})}}).at(0);
  EXPECT_EQ(collective_words(mixed, 0), "all_reduce #5 of default_pg");
  EXPECT_EQ(collective_words(mixed, 1), "all_gather #5 of default_pg");
}

TEST(CollectiveFacts, NothingIsStuck) {
  EXPECT_EQ(sentences({}), std::vector<std::string>{});
  EXPECT_EQ(sentences({{0, of({entry(5, false)})}, {1, of({entry(5, false)})}}),
            std::vector<std::string>{});
  // A rank runs behind, but no other rank waits for it.
  EXPECT_EQ(sentences({{0, of({entry(5, false), entry(6, false)})}, {1, of({entry(5, false)})}}),
            std::vector<std::string>{});
}

TEST(CollectiveFacts, OthersMayBeFarAhead) {
  EXPECT_EQ(
      sentences({{0, of({entry(5, false), entry(6, true), entry(7, true), entry(8, true)})},
                 {1, of({entry(5, false), entry(6, true), entry(7, true)})},
                 {2, of({entry(5, false)})}}),
      std::vector<std::string>{"rank 2 never entered #6 nccl:all_reduce of default_pg, 268 MB"});
}

TEST(CollectiveFacts, ARankThatHasEnteredNothing) {
  EXPECT_EQ(
      sentences({{0, of({entry(1, true)})}, {1, of({})}}),
      std::vector<std::string>{"rank 1 never entered #1 nccl:all_reduce of default_pg, 268 MB"});
}

TEST(CollectiveFacts, SizesMustAgreeWhereTheOperationWantsIt) {
  Entry other = entry(2, true);
  other.sizes = "[[8]]";
  EXPECT_EQ(sentences({{0, of({entry(2, true)})}, {1, of({other})}, {2, of({other})}}),
            std::vector<std::string>{
                "mismatch in #2 of default_pg: nccl:all_reduce [[4]] Float (rank 0) against "
                "nccl:all_reduce [[8]] Float (ranks 1-2)"});
  other.name = "nccl:scatter";
  Entry one = entry(2, true, "nccl:scatter");
  EXPECT_EQ(merge_dumps({{0, of({one})}, {1, of({other})}}).at(0).kind,
            GroupStuck::Kind::all_entered);
}

TEST(CollectiveFacts, SendAndRecvDoNotCount) {
  Entry send = entry(9, true, "nccl:send 0->1");
  send.point_to_point = true;
  EXPECT_EQ(sentences({{0, of({entry(1, false), send})}, {1, of({entry(1, false)})}}),
            std::vector<std::string>{});
}

TEST(CollectiveFacts, OnlyMembersOfAGroupCanBeBehind) {
  Entry one = entry(1, true);
  one.group = "3";
  one.group_words = "undefined";
  Dump listed = of({one});
  listed.members["3"] = {0, 2, 7};
  EXPECT_EQ(sentences({{0, listed}, {1, of({})}, {2, of({})}}),
            std::vector<std::string>{"rank 2 never entered #1 nccl:all_reduce of group 3, 268 MB"});
}

TEST(CollectiveFacts, TheSentenceIsBounded) {
  std::map<int, Dump> dumps;
  for (int rank = 0; rank < 2000; ++rank)
    dumps[rank] = of({entry(1, true, std::string(100, 'x') + std::to_string(rank))});
  EXPECT_LE(sentences(dumps).at(0).size(), 600U);
}

}  // namespace
}  // namespace lockstep::recorder
