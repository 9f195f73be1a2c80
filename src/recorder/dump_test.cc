#include "recorder/dump.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace lockstep::recorder {
namespace {

std::string fixture_bytes(const std::string& name) {
  std::ifstream file(std::string(LOCKSTEP_FIXTURES) + "/" + name, std::ios::binary);
  LOCKSTEP_CHECK(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

// Recorded by gloo workers of PyTorch 2.14.1.
TEST(Dump, JsonOfGloo) {
  const Dump dump = read_dump(fixture_bytes("skip.0.json")).value();
  EXPECT_EQ(dump.version, "2.10");
  ASSERT_EQ(dump.entries.size(), 4U);
  const Entry& last = dump.entries.back();
  EXPECT_EQ(last.group, "0");
  EXPECT_EQ(last.group_words, "default_pg");
  EXPECT_EQ(last.sequence, 3);
  EXPECT_EQ(last.name, "gloo:all_reduce");
  EXPECT_EQ(last.sizes, "[[4]]");
  EXPECT_EQ(last.bytes, 16);
  EXPECT_TRUE(last.active);
  EXPECT_FALSE(dump.entries.front().active);
  EXPECT_EQ(dump.entries[2].group, "1");
  EXPECT_TRUE(dump.members.empty());
}

TEST(Dump, ThePickleSaysTheSame) {
  for (const std::string rank : {"0", "2"}) {
    const Dump json = read_dump(fixture_bytes("skip." + rank + ".json")).value();
    const Dump pickle = read_dump(fixture_bytes("skip." + rank + ".pickle")).value();
    ASSERT_EQ(pickle.entries.size(), json.entries.size());
    for (std::size_t i = 0; i < json.entries.size(); ++i) {
      EXPECT_EQ(pickle.entries[i].name, json.entries[i].name);
      EXPECT_EQ(pickle.entries[i].group, json.entries[i].group);
      EXPECT_EQ(pickle.entries[i].sequence, json.entries[i].sequence);
      EXPECT_EQ(pickle.entries[i].sizes, json.entries[i].sizes);
      EXPECT_EQ(pickle.entries[i].active, json.entries[i].active);
      EXPECT_EQ(pickle.entries[i].created_ns, json.entries[i].created_ns);
    }
  }
}

TEST(Dump, PickleWithStacks) {
  const Dump dump = read_dump(fixture_bytes("stacks.0.pickle")).value();
  ASSERT_EQ(dump.entries.size(), 4U);
  EXPECT_EQ(dump.entries.back().sequence, 3);
  EXPECT_TRUE(dump.entries.back().active);
}

TEST(Dump, CutOffAnywhereIsRefusedOrRead) {
  for (const std::string name : {"skip.0.json", "skip.0.pickle"}) {
    const std::string bytes = fixture_bytes(name);
    for (std::size_t size = 0; size + 1 < bytes.size(); size += 7)
      EXPECT_FALSE(read_dump(bytes.substr(0, size)).has_value()) << name << size;
  }
}

TEST(Dump, HostileMembers) {
  const auto read = [](const std::string& text) { return read_dump(text).value(); };
  EXPECT_TRUE(read("{}").entries.empty());
  EXPECT_TRUE(read(R"({"entries":[1,null,"x"]})").entries.empty());
  const Entry entry = read(R"({"entries":[{"process_group":[1,"\u001b[2J"],"profiling_name":7,
               "collective_seq_id":"12","input_sizes":[[9223372036854775807,9223372036854775807]],
               "input_dtypes":["Float"],"is_p2p":1}]})")
                          .entries.at(0);
  EXPECT_EQ(entry.group.find('\x1b'), std::string::npos);
  EXPECT_EQ(entry.sequence, 12);
  EXPECT_EQ(entry.bytes, -1);
  EXPECT_FALSE(read_dump("[]").has_value());
  EXPECT_FALSE(read_dump("\x80\2N.").has_value());
  EXPECT_FALSE(read_dump(R"({"a":[1,2,3]})", {.values = 3}).has_value());
  const Dump members = read(R"({"pg_config":{"0":{"name":"0","ranks":"[3, 1,1, -2]"},"x":3}})");
  EXPECT_EQ(members.members.at("0"), (std::vector<int>{1, 3}));
}

TEST(Dump, TheLatestEntriesAreKept) {
  const Dump dump =
      read_dump(R"({"entries":[{"collective_seq_id":1},{"collective_seq_id":2}]})", {.entries = 1})
          .value();
  ASSERT_EQ(dump.entries.size(), 1U);
  EXPECT_EQ(dump.entries[0].sequence, 2);
}

}  // namespace
}  // namespace lockstep::recorder
