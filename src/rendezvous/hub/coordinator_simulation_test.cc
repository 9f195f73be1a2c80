// Hundreds of nodes and random events from a seed: joins, failures, losses, silences, lost and
// repeated frames, new connections, the end. Invariants: no node ever holds ranks that contradict
// another node's, and after the noise all nodes agree.
#include "base/rounds_testing.h"

#include <cstdint>
#include <random>
#include <set>

#include "coordinator_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using testing::FakeAgent;
using testing::nodes;
using namespace std::chrono_literals;

class Simulation : public testing::CoordinatorFixture {
 public:
  Simulation(unsigned seed, std::size_t least, std::size_t most)
      : CoordinatorFixture(nodes(least, most)), random_(seed) {
    settings.last_call = 500ms;
    hub.emplace(settings, now);
  }

  void run(int steps, std::size_t nodes_at_all) {
    for (std::size_t i = 0; i < nodes_at_all; ++i) {
      come(name_of(i));
      join_again(name_of(i));
    }
    for (int i = 0; i < steps && !hub->over(); ++i) {
      const std::string name = name_of(pick(nodes_at_all));
      act(name);
      check();
    }
  }
  // Stops the noise: all nodes behave.
  void settle() {
    for (int i = 0; i < 200; ++i) {
      for (auto& [name, agent] : agents) {
        if (agent.closed) come(name);
        if (wants_to_join(name)) join_again(name);
      }
      pass(200ms);
      check();
    }
  }
  // Every living node is in one round, or a spare.
  void expect_agreement() {
    ASSERT_FALSE(hub->over()) << hub->status();
    std::int64_t number = -1;
    std::size_t placed = 0;
    for (const auto& [name, agent] : agents) {
      const Round* round = agent.round();
      if (round == nullptr) continue;
      ++placed;
      if (number < 0) number = round->number;
      EXPECT_EQ(round->number, number) << name;
      EXPECT_EQ(static_cast<std::size_t>(round->group_world_size),
                std::min(agents.size(), settings.max_nodes));
    }
    EXPECT_EQ(placed, std::min(agents.size(), settings.max_nodes)) << hub->status();
  }
  int rounds() const { return static_cast<int>(places_.size()); }

 private:
  static std::string name_of(std::size_t i) { return "n" + std::to_string(i); }
  std::size_t pick(std::size_t below) { return random_() % below; }

  FakeAgent& come(const std::string& name) {
    to_join_.insert(name);
    FakeAgent& agent = arrive(name);
    agent.offer.max_restarts = 1'000'000;
    return agent;
  }
  bool wants_to_join(const std::string& name) const {
    return to_join_.contains(name) || agents.at(name).last<Interrupted>() != nullptr;
  }
  void join_again(const std::string& name) {
    to_join_.erase(name);
    say(name, agents.at(name).offer);
  }

  void act(const std::string& name) {
    const bool known = agents.contains(name) && !agents[name].closed;
    if (!known) {
      come(name).offer.local_world_size = static_cast<int>(pick(8)) + 1;
      return;
    }
    FakeAgent& agent = agents[name];
    const Round* round = agent.round();
    const std::int64_t number =
        round == nullptr ? static_cast<std::int64_t>(pick(3)) : round->number;
    switch (pick(16)) {
      case 0:
        if (round != nullptr) to_join_.insert(name);
        return say(name, Failed{number, false, "a worker of " + name});
      case 1:
        if (agents.size() > settings.min_nodes + 2) {
          lose(name);
          agents.erase(name);
        }
        return;
      case 2:
        lose(name, "reset");
        agent.closed = true;
        return;
      case 3:  // a new connection beside the old one
        come(name);
        return;
      case 4:
        say(name, Leave{Leave::How::returns});
        agents[name].closed = true;
        return;
      case 5:
        if (pick(4) == 0) return pass(6s, {name.c_str()});  // silent
        return pass(Ms(100 * (1 + pick(20))));
      case 6:
        return say(name, StoreOffer{number, "x", 1, ""});  // unasked
      case 7:
        return join_again(name);  // once too often, or in the middle of a round
      default:
        most_join();
    }
  }
  void most_join() {
    std::vector<std::string> names;
    for (const auto& [name, agent] : agents) {
      if (!agent.closed && wants_to_join(name) && pick(20) > 0) names.push_back(name);
    }
    std::shuffle(names.begin(), names.end(), random_);
    for (const std::string& name : names)
      join_again(name);
  }

  // Checks each round: ranks 0 to n-1 once each, the same size and master, and distinct agents.
  void check() {
    for (const auto& [name, agent] : agents) {
      const Round* round = agent.round();
      if (round == nullptr) continue;
      auto& place = places_[round->number];
      if (place.ranks.empty()) place.size = round->group_world_size;
      EXPECT_EQ(round->group_world_size, place.size);
      EXPECT_LT(round->group_rank, place.size);
      EXPECT_GE(static_cast<std::size_t>(place.size), settings.min_nodes);
      EXPECT_LE(static_cast<std::size_t>(place.size), settings.max_nodes);
      const auto [holder, fresh] = place.ranks.try_emplace(round->group_rank, name);
      EXPECT_EQ(holder->second, name) << "rank " << round->group_rank;
    }
  }

  struct Place {
    int size = 0;
    std::map<int, std::string> ranks;
  };
  std::mt19937 random_;
  std::set<std::string> to_join_;
  std::map<std::int64_t, Place> places_;
};

TEST(CoordinatorSimulation, RandomLives) {
  const int seeds = test_rounds(60);
  int rounds = 0;
  for (int at = 1; at <= seeds; ++at) {
    const auto seed = static_cast<unsigned>(at);
    SCOPED_TRACE(seed);
    // With a small minimum the job never ends for lack of nodes.
    Simulation simulation(seed, 1, seed % 3 == 0 ? 4 : 30);
    simulation.run(600, 20);
    simulation.settle();
    simulation.expect_agreement();
    rounds += simulation.rounds();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(rounds, 16 * seeds);
}

TEST(CoordinatorSimulation, HundredsOfNodes) {
  Simulation simulation(7, 1, 300);
  simulation.run(test_rounds(4000), 400);
  simulation.settle();
  simulation.expect_agreement();
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
