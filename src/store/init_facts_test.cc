#include "store/init_facts.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace lockstep::store {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kNow{100s};

// Clients of ranks 0, 1, ... with numbers 1, 2, ... and pids 101, 102, ...
struct World {
  Witness witness{.taken = kNow};
  std::vector<RankProcess> table;
  int size;

  explicit World(int ranks) : size(ranks) {
    for (int rank = 0; rank < ranks; ++rank)
      table.push_back({.rank = rank, .pid = 101U + static_cast<unsigned>(rank)});
  }
  World& connect(int rank, bool tells_pid = true) {
    const auto number = static_cast<std::uint64_t>(rank) + 1;
    witness.sessions.push_back({.number = number,
                                .pid = tells_pid ? 100 + static_cast<std::uint32_t>(number) : 0,
                                .peer = "127.0.0.1:4"});
    return *this;
  }
  World& key(int rank, const std::string& name, const std::string& value = "x") {
    witness.keys.push_back({name, value, static_cast<std::uint64_t>(rank) + 1});
    return *this;
  }
  World& wait(int rank, const std::string& name, std::chrono::milliseconds since) {
    for (WitnessSession& session : witness.sessions)
      if (session.number == static_cast<std::uint64_t>(rank) + 1)
        session.waits.push_back({.keys = {name}, .missing = 1, .since = kNow - since});
    return *this;
  }
  StoreFacts facts() const { return read_witness(witness, table, size); }
  std::string sentence() const { return store_sentence(facts()); }
};

std::string at(int rank) {
  return fmt::format("/default_pg/0//cpu//0/{}", rank);
}
std::string inside(int group, int rank) {
  return fmt::format("/default_pg/0//{}//cpu//0/{}", group, rank);
}

World one_never_connects() {
  World world(4);
  for (const int rank : {0, 1, 3})
    world.connect(rank).key(rank, at(rank)).wait(rank, at(2), 9900ms);
  return world;
}

TEST(InitFacts, ARankThatNeverConnects) {
  const World world = one_never_connects();
  EXPECT_EQ(world.sentence(),
            "group default_pg: ranks 0-1, 3 wait 9.9 s for the key of rank 2, which has never "
            "connected");
  EXPECT_EQ(world.facts().never_connected, std::vector<int>{2});
}

TEST(InitFacts, AllMissingRanksAreListedThoughOnlyTheLowestIsWaitedFor) {
  World world(8);
  for (const int rank : {0, 3})
    world.connect(rank).key(rank, at(rank)).wait(rank, at(1), rank == 0 ? 3min : 1s);
  world.connect(5);
  EXPECT_EQ(world.sentence(),
            "group default_pg: ranks 0, 3 wait 3 min for the keys of ranks 1-2, 4-7 "
            "(ranks 1-2, 4, 6-7 have never connected)");
  world.witness.all_keys = false;  // what is not in a list that was cut may be there
  EXPECT_EQ(world.facts().groups.at(0).missing, std::vector<int>{1});
}

TEST(InitFacts, ARankThatHasLeft) {
  World world = one_never_connects();
  world.witness.departed.push_back({.number = 9, .pid = 103, .peer = "127.0.0.1:9"});
  EXPECT_EQ(world.sentence(),
            "group default_pg: ranks 0-1, 3 wait 9.9 s for the key of rank 2, which has left the "
            "store");
}

TEST(InitFacts, NothingWaits) {
  World world(2);
  world.connect(0).key(0, at(0));
  EXPECT_EQ(world.sentence(), "");
  EXPECT_EQ(world.facts().never_connected, std::vector<int>{1});
}

// 1.13 tells no pid: the keys of the default group tell which client is which rank.
TEST(InitFacts, OlderClientsAreKnownByTheirKeys) {
  World world(3);
  const std::string head = "//worker/attempt_0/default_pg/0/0/rank_";
  for (const int rank : {0, 2})
    world.connect(rank, false).key(rank, head + std::to_string(rank)).wait(rank, head + "1", 2s);
  EXPECT_EQ(world.sentence(),
            "group default_pg: ranks 0, 2 wait 2.0 s for the key of rank 1, which has never "
            "connected");
  // A client of unknown rank may be the missing rank.
  world.connect(7, false);
  EXPECT_EQ(world.sentence(), "group default_pg: ranks 0, 2 wait 2.0 s for the key of rank 1");
}

// Captured: rank 3 waits for the host of rank 2; ranks 0 and 1 have seen each other's hosts, and
// wait for addresses. Rank 3 has no address yet, but it is rank 2 that all wait for.
TEST(InitFacts, HostsAndAddressesOfOneGroup) {
  World world(4);
  const std::string head = "//worker/attempt_0/default_pg/0/0/";
  for (const int rank : {0, 1, 3})
    world.connect(rank, false).key(rank, head + "rank_" + std::to_string(rank));
  world.key(0, head + "0").key(1, head + "1");
  world.wait(3, head + "rank_2", 3s).wait(0, head + "2", 2s).wait(1, head + "2", 1s);
  EXPECT_EQ(world.sentence(),
            "group default_pg: ranks 0-1, 3 wait 3.0 s for the key of rank 2, which has never "
            "connected");
}

TEST(InitFacts, WithoutTableAndKeysTheClientsAreCounted) {
  World world(4);
  world.table.clear();
  world.connect(0).connect(1).wait(0, "/default_pg/0//cuda//0", 5s);
  world.wait(1, "/default_pg/0//cuda//0", 4s);
  EXPECT_EQ(world.sentence(), "group default_pg: 2 clients wait 5.0 s for the key of rank 0");
  world.table = {{.rank = 1, .pid = 102}};
  EXPECT_EQ(world.sentence(),
            "group default_pg: rank 1 and 1 more client wait 5.0 s for the key of rank 0");
}

// As captured with new_group([0, 1, 3]), rank 1 late; rank 2 waits in the next group, [1, 2].
TEST(InitFacts, AMemberOfAGroupIsFoundByItsNeighbours) {
  World world(4);
  for (const int rank : {0, 1, 2, 3})
    world.connect(rank).key(rank, at(rank));
  world.key(0, inside(1, 0)).wait(0, inside(1, 1), 2s);
  world.key(3, inside(1, 2)).wait(3, inside(1, 1), 2s);
  // Between 0 and 3 are two ranks.
  EXPECT_EQ(world.sentence(),
            "group 1: ranks 0, 3 wait 2.0 s for the key of the group's own rank 1 "
            "(among ranks 1-2 of the job)");
  world.key(2, inside(2, 1)).wait(2, inside(2, 0), 1s);
  EXPECT_EQ(world.facts().groups.at(0).missing, std::vector<int>{1});
  EXPECT_TRUE(world.sentence().starts_with(
      "group 1: ranks 0, 3 wait 2.0 s for the key of rank 1; group 2: rank 2 waits 1.0 s for "))
      << world.sentence();
}

TEST(InitFacts, NcclsIdComesFromTheFirstRank) {
  World world(4);
  for (const int rank : {1, 2, 3})
    world.connect(rank).wait(rank, "/default_pg/0//cuda//0", 3s);
  EXPECT_EQ(world.sentence(),
            "group default_pg: ranks 1-3 wait 3.0 s for the key of rank 0, which has never "
            "connected");
}

TEST(InitFacts, EqualPidsOfTwoNodesAreToldApartByTheirAddress) {
  World world(2);
  world.table = {{.rank = 0, .pid = 7}, {.rank = 1, .pid = 7, .host = "10.0.0.2"}};
  world.witness.sessions.push_back({.number = 1, .pid = 7, .peer = "10.0.0.2:99"});
  world.wait(0, at(0), 1s);
  EXPECT_EQ(world.facts().groups.at(0).waiting, std::vector<int>{1});
  EXPECT_EQ(world.facts().never_connected, std::vector<int>{0});
}

TEST(InitFacts, Signals) {
  World world(2);
  world.key(0, "exception_dump", std::string("\5\0\0\0", 4));
  world.key(0, "default_pg/remote_error:0", "long text");
  world.key(1, "debug_server/rank1", "http://h\x1b:80");
  const StoreFacts facts = world.facts();
  EXPECT_EQ(facts.exception_dump, 5);
  EXPECT_EQ(facts.remote_error, std::nullopt);
  EXPECT_EQ(facts.debug_urls.at(1), "http://h\\x1b:80");
  EXPECT_EQ(world.sentence(), "the watchdog of rank 5 timed out first");
}

TEST(InitFacts, Barrier) {
  World world(3);
  world.connect(0).key(0, "default_pg/store_based_barrier_key:1", "2");
  world.wait(0, "default_pg/store_based_barrier_key:1:last_worker", 2s);
  EXPECT_EQ(world.sentence(),
            "group 1: rank 0 waits 2.0 s for the other ranks in the barrier after its start, where "
            "2 have arrived");
}

TEST(InitFacts, OtherKeysCountForRanksOnly) {
  World world(2);
  world.connect(0).connect(8).wait(0, "mine\n", 2s).wait(8, "torchelastic/x", 2s);
  EXPECT_EQ(world.sentence(), "rank 0 waits 2.0 s for the store's key 'mine\\x0a'");
}

TEST(InitFacts, TheSentenceIsBounded) {
  World world(2'000);
  for (int rank = 0; rank < 1'000; rank += 2)
    world.connect(rank).wait(rank, inside(rank, 1), 1s);
  EXPECT_LE(world.sentence().size(), 1000U);
}

}  // namespace
}  // namespace lockstep::store
