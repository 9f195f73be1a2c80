#include "cloud/renting.h"

#include "cloud/reconcile.h"
#include "cloud/rent_world_testing.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace lockstep::cloud {
namespace {

using testing::Killed;
using testing::SimProvider;
using testing::SimRecords;
using testing::SimRules;
using testing::SimWeb;
using testing::SimWorld;

Offer sim_offer(const std::string& zone, double usd) {
  Offer offer{.provider = "sim", .region = "r1", .zone = zone, .type = "g1", .gpu = "L4"};
  offer.gpus = 1;
  offer.price = {.per_hour = static_cast<Micros>(usd * 1e6), .source = Price::Source::live};
  return offer;
}

Catalog sim_catalog() {
  Catalog catalog;
  for (const auto& [zone, usd] : std::vector<std::pair<std::string, double>>{
           {"r1-a", 1.0}, {"r1-b", 1.1}, {"r1-c", 1.2}, {"r1-d", 1.3}, {"r1-e", 1.4}})
    catalog.offers.push_back(sim_offer(zone, usd));
  return catalog;
}

Rental sim_rental(const SimWorld& world, int nodes) {
  Rental rental{.id = "intent0000000000000a", .cluster = "c", .owner = "owner00000000000"};
  rental.wish.gpu = *parse_gpu_wish("L4:1");
  rental.wish.nodes = nodes;
  rental.terms.lifetime_s = 6 * 3600;
  rental.created_ms = world.now;
  return rental;
}

// What one process of a client has.
struct Client {
  explicit Client(SimWorld& in)
      : world(in),
        provider(in, "sim"),
        web(in),
        records(new SimRecords(in)),
        journal(std::unique_ptr<Records>(records)),
        renting({journal,
                 web,
                 web,
                 [this](std::string_view name) { return name == "sim" ? &provider : nullptr; },
                 {}}) {}

  Status rent(Rental& rental) {
    return renting.rent(rental, sim_catalog, [](Rental&) { return Verdict{}; });
  }
  Result<Reconciled> sweep() {
    return reconcile({journal,
                      web,
                      {&provider},
                      "owner00000000000",
                      [](const std::string&) { return true; },
                      [](const std::string&) {}});
  }

  SimWorld& world;
  SimProvider provider;
  SimWeb web;
  SimRecords* records;
  Journal journal;
  Renting renting;
};

// The user types `run` until it works, each time a new process that may be killed at any step.
bool rent_in_spite_of_kills(SimWorld& world, const Rental& wanted) {
  for (int process = 0; process < 30; ++process) {
    Client client(world);
    try {
      auto open = client.journal.of_cluster("c");
      Rental rental = open ? *open : wanted;
      if (client.rent(rental)) return true;
    } catch (const Killed&) {
      client.records->crash();
    }
    world.pass_time(world.between(0, 30'000));
  }
  return false;
}

// `down --all`, typed until it says that nothing is left.
void give_all_back(SimWorld& world) {
  world.kills = false;
  for (int i = 0; i < 20; ++i) {
    Client client(world);
    auto open = client.journal.open_rentals();
    ASSERT_TRUE(open);
    bool done = true;
    for (Rental& rental : *open)
      done = client.renting.give_back(rental).has_value() && done;
    const auto swept = client.sweep();
    if (done && swept && swept->unheard.empty() && swept->ended.empty()) return;
    world.pass_time(60'000);
  }
}

Micros journal_cost(SimWorld& world) {
  Client client(world);
  Micros sum = 0;
  const auto rentals = client.journal.since(0);
  for (const Rental& rental : *rentals)
    sum += cost_so_far(rental, world.now, 0);
  return sum;
}

// Of each of the four parts. A build for debugging or with sanitizers is slow: it has fewer.
int runs_wanted() {
  const char* wish = std::getenv("LOCKSTEP_RANDOM_RUNS");
  if (wish != nullptr) return std::atoi(wish);
#ifdef NDEBUG
  return 2'500;
#else
  return 100;
#endif
}

struct Tally {
  int rented = 0;
  int twice = 0;  // runs with more machines alive than wanted
  int left = 0;   // with machines alive at the end
  int wrong_bill = 0;
};

Tally random_runs(int first, int runs, const std::function<void(SimRules&, unsigned)>& vary) {
  Tally tally;
  for (int seed = first; seed < first + runs; ++seed) {
    SimRules rules;
    rules.tokens = seed % 2 == 0;
    rules.gang_in_one = seed % 4 == 0;  // as only those do that know tokens
    vary(rules, static_cast<unsigned>(seed));
    SimWorld world(static_cast<unsigned>(seed), rules);
    const int nodes = 1 + seed % 3;
    const Rental wanted = sim_rental(world, nodes);
    tally.rented += rent_in_spite_of_kills(world, wanted) ? 1 : 0;
    give_all_back(world);
    if (world.most_alive > static_cast<std::size_t>(nodes)) ++tally.twice;
    if (world.alive() != 0) ++tally.left;
    if (journal_cost(world) != world.billed()) ++tally.wrong_bill;
  }
  return tally;
}

class RandomRuns : public ::testing::TestWithParam<int> {};

TEST_P(RandomRuns, NoMachineTwiceNoneLeftAndTheBillIsRight) {
  const int runs = runs_wanted();
  const Tally tally = random_runs(GetParam() * runs, runs, [](SimRules&, unsigned) {});
  EXPECT_GT(tally.rented, runs * 9 / 10);
  EXPECT_EQ(tally.twice, 0);
  EXPECT_EQ(tally.left, 0);
  EXPECT_EQ(tally.wrong_bill, 0);
}

INSTANTIATE_TEST_SUITE_P(Parts, RandomRuns, ::testing::Values(0, 1, 2, 3));

// The check itself: with the token of the first attempt in every zone, or with records that a crash
// takes along, it must find what is wrong.
TEST(RandomRunsCheck, ATokenThatIsUsedAgainIsFound) {
  const Tally tally = random_runs(0, 200, [](SimRules& rules, unsigned) {
    rules.token_per_attempt = false;
    rules.tokens = true;
  });
  EXPECT_GT(tally.twice + tally.left + tally.wrong_bill, 0);
}

TEST(RandomRunsCheck, ARecordThatIsNotSyncedIsFound) {
  const Tally tally = random_runs(0, 200, [](SimRules& rules, unsigned) { rules.sync = false; });
  EXPECT_GT(tally.twice + tally.left + tally.wrong_bill, 0);
}

TEST(Renting, TheClientNeverComesBackAndTheLeaseEndsAll) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SimRules rules;
    rules.kill = 0.1;
    SimWorld world(seed, rules);
    Client client(world);
    Rental rental = sim_rental(world, 2);
    try {
      (void)client.rent(rental);
    } catch (const Killed&) {
    }
    world.pass_time((6 * 3600 + 60) * 1000);
    EXPECT_EQ(world.alive(), 0U) << seed;
  }
}

}  // namespace
}  // namespace lockstep::cloud
