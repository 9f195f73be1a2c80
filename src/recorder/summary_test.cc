#include "recorder/summary.h"

#include "recorder/collective_facts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::recorder {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kHere = 1'000'000 * kSecond;   // this node's clock
constexpr std::int64_t kThere = 1'500'000 * kSecond;  // another node's
const std::string kReduce = "nccl:all_reduce";

Entry entry(std::int64_t sequence, bool active, const std::string& name = kReduce,
            const std::string& group = "0") {
  return {.group = group,
          .group_words = group == "0" ? "default_pg" : "data",
          .sequence = sequence,
          .name = name,
          .sizes = "[[4]]",
          .types = "Float",
          .bytes = 268'435'456,
          .created_ns = kHere - 40 * kSecond + sequence,
          .active = active};
}

// A rank that has entered so many collectives, of which so many have ended.
Dump rank(int entered, int ended, const std::string& last = kReduce) {
  Dump dump;
  for (int i = 1; i <= entered; ++i)
    dump.entries.push_back(entry(i, i > ended, i == entered ? last : kReduce));
  return dump;
}

Summary told(const Summary& summary, int world = 8) {
  return read_summary(summary_json(summary, kHere), world, kThere).value();
}

std::vector<std::string> sentences(const std::map<int, Dump>& dumps, int world = 0) {
  std::vector<std::string> texts;
  for (const GroupStuck& stuck : merge_dumps(dumps, world))
    texts.push_back(stuck_sentence(stuck));
  return texts;
}

// What the leader finds if ranks 4 to 7 are on another node.
std::vector<std::string> over_nodes(const std::map<int, Dump>& dumps) {
  std::map<int, Dump> known;
  Summary other;
  for (const auto& [rank, dump] : dumps)
    (rank < 4 ? known : other.dumps).emplace(rank, dump);
  known.merge(told(other).dumps);
  return sentences(known, 8);
}

std::map<int, Dump> eight(const Dump& others, int culprit, const Dump& its) {
  std::map<int, Dump> dumps;
  for (int rank = 0; rank < 8; ++rank)
    dumps[rank] = rank == culprit ? its : others;
  return dumps;
}

TEST(Summary, SaysOverNodesWhatWholeDumpsSay) {
  for (const int culprit : {3, 5}) {
    const std::string name = "rank " + std::to_string(culprit);
    const auto never = eight(rank(1742, 1741), culprit, rank(1741, 1741));
    EXPECT_EQ(over_nodes(never),
              std::vector<std::string>{name + " never entered #1742 nccl:all_reduce of default_pg, "
                                              "268 MB"});
    // The other ranks run ahead of the GPU: no rank has left the collectives that they entered.
    const auto ahead = eight(rank(1900, 1741), culprit, rank(1741, 1741));
    EXPECT_EQ(over_nodes(ahead), over_nodes(never));
    const auto mismatch = eight(rank(9, 8), culprit, rank(9, 8, "nccl:all_gather"));
    EXPECT_EQ(over_nodes(mismatch), sentences(mismatch));
    EXPECT_TRUE(over_nodes(mismatch)[0].starts_with("mismatch in #9")) << over_nodes(mismatch)[0];
    const auto all = eight(rank(9, 8), culprit, rank(9, 8));
    EXPECT_EQ(over_nodes(all), sentences(all));
    EXPECT_TRUE(over_nodes(all)[0].ends_with("network or library")) << over_nodes(all)[0];
    EXPECT_TRUE(over_nodes(eight(rank(9, 9), culprit, rank(9, 9))).empty());
  }
}

TEST(Summary, IsShort) {
  Summary summary;
  for (int each = 0; each < 8; ++each)
    summary.dumps[each] = rank(2000, each == 3 ? 1998 : 1990);
  EXPECT_LE(summary_json(summary, kHere).size(), 2048U);
}

TEST(Summary, ManyGroupsAreBoundedAndThoseThatStandComeFirst) {
  Summary summary;
  for (int each = 0; each < 8; ++each) {
    Dump dump;
    for (int group = 100; group < 164; ++group)
      dump.entries.push_back(entry(each + 1, group == 150, kReduce, std::to_string(group)));
    summary.dumps[each] = dump;
  }
  const std::string json = summary_json(summary, kHere);
  EXPECT_LE(json.size(), kMostSummary);
  const Summary read = read_summary(json, 8, kThere).value();
  ASSERT_EQ(read.dumps.size(), 8U);
  for (const auto& [rank, dump] : read.dumps)
    EXPECT_TRUE(std::any_of(dump.entries.begin(), dump.entries.end(), [](const Entry& each) {
      return each.group == "150" && each.active;
    })) << rank;
}

TEST(Summary, AgesAreToldBecauseClocksDiffer) {
  Summary summary{.dumps = {{1, rank(7, 6)}}, .inside = {{1, std::chrono::seconds(31)}}};
  const Summary read = told(summary);
  EXPECT_EQ(kThere - read.dumps.at(1).entries.back().created_ns, 40 * kSecond - 1'000'000 / 1);
  EXPECT_EQ(read.inside.at(1), std::chrono::seconds(31));
}

TEST(Summary, RanksThatSayTheSameAreOne) {
  Summary summary;
  for (int each = 0; each < 4; ++each)
    summary.dumps[each] = rank(3, 2);
  const std::size_t one = summary_json({.dumps = {{0, rank(3, 2)}}}, kHere).size();
  EXPECT_LE(summary_json(summary, kHere).size(), one + 2);
  summary.inside = {{0, std::chrono::seconds(9)}, {1, std::chrono::seconds(8)}};
  const Summary read = told(summary);
  EXPECT_EQ(read.inside.size(), 2U);
  EXPECT_EQ(read.inside.at(0), std::chrono::seconds(8));
}

TEST(Summary, KeepsMembersOfOtherGroupsAndSilentRanks) {
  Dump dump;
  dump.entries = {entry(1, true, kReduce, "7")};
  dump.members = {{"7", {0, 4}}};
  Summary summary{.dumps = {{0, dump}}, .silent = {1}, .unreadable = {2, 3}};
  const Summary read = told(summary);
  EXPECT_EQ(read.dumps.at(0).members.at("7"), (std::vector<int>{0, 4}));
  EXPECT_EQ(read.silent, std::vector<int>{1});
  EXPECT_EQ(read.unreadable, (std::vector<int>{2, 3}));
}

TEST(Summary, FewBytesOfAnotherNodeDoNotBecomeManyEntries) {
  std::string entries = "{}";
  for (int i = 1; i < 4000; ++i)
    entries += ",{}";
  const auto read =
      read_summary(R"({"parts":[{"ranks":"0-4095","entries":[)" + entries + "]}]}", 4096, kHere);
  ASSERT_TRUE(read);
  std::size_t total = 0;
  for (const auto& [rank, dump] : read->dumps) {
    EXPECT_LE(dump.entries.size(), 64U);
    total += dump.entries.size();
  }
  EXPECT_LE(total, 16'384U);
  EXPECT_GE(read->dumps.size(), 200U) << "more ranks than a node has";
}

TEST(Summary, ForeignBytesAreBounded) {
  EXPECT_FALSE(read_summary("[]", 8, 0));
  EXPECT_FALSE(read_summary("{", 8, 0));
  EXPECT_FALSE(read_summary(std::string(kMostSummary + 1, ' ') + "{}", 8, 0));
  EXPECT_TRUE(read_summary("{}", 8, 0).value().dumps.empty());
  const std::string json = R"({"parts":[{"ranks":"1, 7-9, 99","entries":[{"group":"0",)"
                           R"("words":"\u001b[2J","sequence":-5,"age_ms":1e300}]}],"silent":"x"})";
  const Summary read = read_summary(json, 8, kHere).value();
  ASSERT_EQ(read.dumps.size(), 2U) << "ranks 1 and 7";
  EXPECT_EQ(read.dumps.at(1).entries.at(0).sequence, 0);
  EXPECT_EQ(read.dumps.at(1).entries.at(0).group_words.find('\x1b'), std::string::npos);
  EXPECT_TRUE(read.silent.empty());
  EXPECT_TRUE(read_summary(R"({"parts":[{"ranks":"0-2000000000"}]})", 8, 0).value().dumps.empty());
}

}  // namespace
}  // namespace lockstep::recorder
