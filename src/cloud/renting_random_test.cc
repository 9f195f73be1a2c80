// Runs renting thousands of times in a world where everything goes wrong. Invariants: never two
// machines for a wanted node, no machine left at the end, and a correct bill.
#include "cloud/reconcile.h"
#include "cloud/rent_provider_testing.h"
#include "cloud/renting.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

namespace lockstep::cloud {
namespace {

using testing::Killed;
using testing::SimKind;
using testing::SimProvider;
using testing::SimRecords;
using testing::SimRules;
using testing::SimWeb;
using testing::SimWorld;

constexpr const char* kOwnerName = "owner00000000000";
constexpr const char* kClusterName = "c";

struct SimPlace {
  const char* provider;
  const char* zone;
  double usd;
};

// Returns the offers of a run's providers.
Catalog sim_catalog(unsigned seed) {
  constexpr std::array<SimPlace, 7> kPlaces = {{{"token", "r1-a", 1.0},
                                                {"name", "r1-a", 1.05},
                                                {"each", "r1-a", 1.1},
                                                {"token", "r1-b", 1.2},
                                                {"name", "r1-b", 1.25},
                                                {"each", "r1-b", 1.3},
                                                {"token", "r1-c", 1.4}}};
  constexpr std::array<const char*, 3> kNames = {"token", "each", "name"};
  Catalog catalog;
  for (const SimPlace& place : kPlaces) {
    // Three of four runs have one provider. The fourth run has all providers.
    if (seed % 4 < 3 && std::string(kNames[seed % 4]) != place.provider) continue;
    Offer offer{
        .provider = place.provider, .region = "r1", .zone = place.zone, .type = "g1", .gpu = "L4"};
    offer.gpus = 1;
    offer.price = {.per_hour = static_cast<Micros>(place.usd * 1e6), .source = Price::Source::live};
    if (offer.provider == "name") offer.ending = Ending::with_guard;
    catalog.offers.push_back(offer);
  }
  return catalog;
}

Rental sim_rental(SimWorld& world, int nodes) {
  Rental rental{.id = "intent" + std::to_string(++world.intents),
                .cluster = kClusterName,
                .owner = kOwnerName};
  rental.wish.gpu = *parse_gpu_wish("L4:1");
  rental.wish.nodes = nodes;
  rental.wish.guarded = true;
  rental.terms.lifetime_s = 6LL * 3600;
  rental.created_ms = world.now;
  return rental;
}

// The parts of a client process.
struct Client {
  explicit Client(SimWorld& in)
      : world(in),
        providers{SimProvider(in, "token", SimKind::token),
                  SimProvider(in, "each", SimKind::token_each),
                  SimProvider(in, "name", SimKind::by_name)},
        web(in, true),
        ending(in, false),
        records(new SimRecords(in)),
        journal(std::unique_ptr<Records>(records)),
        renting(
            {journal, web, ending, [this](std::string_view name) { return called(name); }, {}}) {}
  ~Client() { let_go(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Provider* called(std::string_view name) {
    for (SimProvider& one : providers)
      if (one.traits().name == name) return &one;
    return nullptr;
  }
  bool try_lock() {
    if (!world.rules.lock) return true;
    has_lock = has_lock || world.locked.insert(kClusterName).second;
    return has_lock;
  }
  void let_go() {
    if (has_lock) world.locked.erase(kClusterName);
    has_lock = false;
  }
  Result<Reconciled> sweep() {
    return reconcile({journal,
                      ending,
                      {providers.data(), &providers[1], &providers[2]},
                      kOwnerName,
                      [this](const std::string&) { return try_lock(); },
                      [this](const std::string&) { let_go(); }});
  }

  SimWorld& world;
  std::array<SimProvider, 3> providers;
  SimWeb web;
  SimWeb ending;
  SimRecords* records;
  Journal journal;
  Renting renting;
  bool has_lock = false;
};

// The violations seen in a run.
struct Outcome {
  bool rented = false;
  bool silent_leak = false;  // an error did not name machines that were alive
};

bool all_heard(const Result<Reconciled>& swept) {
  return swept && swept->unheard.empty() &&
         std::all_of(swept->ended.begin(), swept->ended.end(),
                     [](const Leftover& one) { return one.error.message.empty(); });
}

// After a restore of an old copy, machines may exist that the journal does not know. A command
// continues only once all places have given a list.
void reconcile_first(Client& client) {
  while (true) {
    const bool heard = all_heard(client.sweep());
    if (!client.world.restored) return;
    client.world.restored = !heard;
    client.world.pass_time(heard ? 0 : 60'000);
  }
}

// Simulates a `run` process, which takes up the rental of an earlier process.
void one_process(SimWorld& world, unsigned seed, int nodes, Outcome& outcome) {
  Client client(world);
  if (!world.busy() && world.chance(world.rules.restore)) {
    world.disk = world.old_disk;
    world.restored = true;
    world.pass_time(120'000);
  }
  if (world.chance(world.rules.restore)) world.old_disk = world.disk;
  try {
    if (world.restored || world.chance(0.3)) reconcile_first(client);
    if (!client.try_lock()) return;
    auto open = client.journal.of_cluster(kClusterName);
    Rental rental = open ? *open : sim_rental(world, nodes);
    if (!rental.wanted) {
      (void)client.renting.machines().give_back(rental);
      return;
    }
    const auto offers = [&] { return sim_catalog(seed); };
    const auto judge = [&](Rental&) {
      return Verdict{world.chance(0.05) ? Verdict::Kind::bad : Verdict::Kind::good};
    };
    // Rent again if the provider preempted the machines.
    for (int loss = 0; loss < 3; ++loss) {
      const Status got = client.renting.rent(rental, offers, judge);
      if (!got) {
        const bool said = got.error().hint.find("there may still be") != std::string::npos;
        outcome.silent_leak = outcome.silent_leak || (!said && world.alive(rental.id) > 0);
        return;
      }
      outcome.rented = true;
      world.pass_time(world.between(0, 1'800'000));
      world.meanwhile();
      if (!client.renting.machines().look(rental) || is_whole(rental)) return;
      if (!client.renting.machines().end_all(rental, "taken")) return;
    }
  } catch (const Killed&) {
    client.records->crash();
  }
}

// Simulates a command in another terminal meanwhile.
void another_process(SimWorld& world, unsigned seed, int nodes, Outcome& outcome) {
  if (world.chance(0.3)) return one_process(world, seed, nodes, outcome);
  Client client(world);
  try {
    auto open = client.journal.open_rentals();
    if (world.chance(0.1) && open && !open->empty()) {  // `down`
      if (!client.try_lock()) (void)client.journal.ask_to_end(open->front().id);
      if (client.has_lock) (void)client.renting.machines().give_back(open->front());
      return;
    }
    (void)client.sweep();
  } catch (const Killed&) {
    client.records->crash();
  }
}

// Simulates `down --all`, repeated until no machine is left.
void give_all_back(SimWorld& world) {
  world.calm = true;
  world.stopped = false;
  world.locked.clear();
  for (int i = 0; i < 20; ++i) {
    Client client(world);
    auto open = client.journal.open_rentals();
    ASSERT_TRUE(open);
    bool done = true;
    for (Rental& rental : *open)
      done = client.renting.machines().give_back(rental).has_value() && done;
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
    sum += cost_so_far(rental, world.now);
  return sum;
}

struct Tally {
  int rented = 0;
  int twice = 0;  // runs with more machines alive than wanted
  int left = 0;   // runs with machines alive at the end
  int silent = 0;
  int wrong_bill = 0;
  std::string seeds = {};  // seeds of runs with a violation

  int wrong() const { return twice + left + silent + wrong_bill; }
};

// until_wrong: stop after the first run with a violation.
Tally random_runs(int first, int runs, const std::function<void(SimRules&)>& vary,
                  bool until_wrong = false) {
  Tally tally;
  for (int at = first; at < first + runs && !(until_wrong && tally.wrong() > 0); ++at) {
    const auto seed = static_cast<unsigned>(at);
    SimRules rules;
    if (seed % 8 == 7) rules.restore = 0.2;
    vary(rules);
    SimWorld world(seed, rules);
    const int nodes = 1 + at % 3;
    Outcome outcome;
    world.others = [&] { another_process(world, seed, nodes, outcome); };
    for (int process = 0; process < 30 && !outcome.rented; ++process) {
      world.stopped = false;
      one_process(world, seed, nodes, outcome);
      world.pass_time(world.between(0, 30'000));
    }
    give_all_back(world);
    tally.rented += outcome.rented ? 1 : 0;
    const int wrong = tally.wrong();
    tally.silent += outcome.silent_leak ? 1 : 0;
    if (world.most_alive > static_cast<std::size_t>(nodes)) ++tally.twice;
    if (world.alive() != 0) ++tally.left;
    // An old copy of the journal lacks some paid machines, so its bill cannot be checked.
    if (rules.restore == 0 && journal_cost(world) != world.billed()) ++tally.wrong_bill;
    if (tally.wrong() > wrong) tally.seeds += " " + std::to_string(seed);
  }
  return tally;
}

// Returns the number of runs for each of the four parts. Debug and sanitizer builds are slow, so
// they make fewer runs.
int runs_wanted() {
  const char* wish = std::getenv("LOCKSTEP_RANDOM_RUNS");
  if (wish != nullptr) return std::atoi(wish);
#ifdef NDEBUG
  return 2'500;
#else
  return 25;
#endif
}

class RandomRuns : public ::testing::TestWithParam<int> {};

TEST_P(RandomRuns, NoMachineTwiceNoneLeftAndTheBillIsRight) {
  const int runs = runs_wanted();
  const Tally tally = random_runs(GetParam() * runs, runs, [](SimRules&) {});
  EXPECT_GT(tally.rented, runs * 8 / 10);
  EXPECT_EQ(tally.twice, 0);
  EXPECT_EQ(tally.left, 0);
  EXPECT_EQ(tally.silent, 0);
  EXPECT_EQ(tally.wrong_bill, 0);
  EXPECT_EQ(tally.seeds, "");
}

INSTANTIATE_TEST_SUITE_P(Parts, RandomRuns, ::testing::Values(0, 1, 2, 3));

// Each of these tests breaks a rule on purpose: the check itself must notice.
int check_runs() {
  return std::min(runs_wanted() * 2, 200);
}

bool is_found(const std::function<void(SimRules&)>& fault) {
  return random_runs(0, check_runs(), fault, true).wrong() > 0;
}

TEST(RandomRunsCheck, ATokenThatIsUsedInAnotherZoneIsFound) {
  EXPECT_TRUE(is_found([](SimRules& rules) { rules.own_zone = false; }));
}

TEST(RandomRunsCheck, ARecordThatIsNotSyncedIsFound) {
  const auto unsynced = [](SimRules& rules) {
    rules.sync = false;
    rules.kill = 0.05;
  };
  EXPECT_TRUE(is_found(unsynced));
}

TEST(RandomRunsCheck, TwoProcessesThatChangeOneRentalAreFound) {
  EXPECT_TRUE(is_found([](SimRules& rules) { rules.lock = false; }));
}

// With an old journal, a machine's intent alone does not tell which launch made the machine.
TEST(RandomRunsCheck, ListsThatDoNotSayTheTokenAreFound) {
  const auto old_journals = [](bool told) {
    return [told](SimRules& rules) {
      rules.tokens_told = told;
      rules.restore = 0.6;
    };
  };
  const int runs = std::min(check_runs(), 100);
  EXPECT_TRUE(is_found(old_journals(false)));
  EXPECT_EQ(random_runs(0, runs, old_journals(true)).wrong(), 0);
}

TEST(RandomRunsCheck, AnEndThatIsNotOneIsFound) {
  EXPECT_TRUE(is_found([](SimRules& rules) { rules.end_heard = false; }));
}

}  // namespace
}  // namespace lockstep::cloud
