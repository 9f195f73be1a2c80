// Many agents against one compare-and-set register, on a virtual clock. A seed determines the
// random order of events. Agents arrive, fail, freeze, vanish and leave, with wall clocks hours
// apart. Invariants: all agents that complete a round agree about the round, and after the storm
// every living agent is in one round or is a spare.
#include "rendezvous/dynamic/dynamic_state.h"
#include "rendezvous/dynamic/state_codec.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <queue>
#include <random>

namespace lockstep::rendezvous::dynamic {
namespace {
using namespace std::chrono_literals;

struct Plan {
  unsigned seed = 0;
  std::size_t agents = 1;
  std::size_t min = 1;
  std::size_t max = 1;
  bool badges = false;        // known as Lockstep agents, which keep their ranks
  bool through_text = false;  // the stored state passes through encode_state() and back
  Period storm = 120s;
};

class Simulation {
 public:
  explicit Simulation(const Plan& plan) : plan_(plan), random_(plan.seed) {
    for (std::size_t i = 0; i < plan.agents; ++i)
      start_agent(range(0s, 40s));
  }

  void run() {
    const Period end = plan_.storm + 150s;
    while (!events_.empty() && events_.top().at < end && !::testing::Test::HasFailure()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      Agent& agent = *agents_[event.agent];
      if (event.turn != agent.turn || agent.gone) continue;
      turn(agent);
    }
    check_end();
  }
  std::size_t rounds() const { return rounds_.size(); }
  std::size_t lost_writes() const { return lost_writes_; }
  std::size_t granted() const { return granted_; }

 private:
  enum class Phase { operating, writing, running };
  struct Agent {
    Agent(Node node, const DynamicSettings& settings) : member(std::move(node), settings) {}
    DynamicMember member;
    std::size_t index = 0;
    Period skew{0};
    Phase phase = Phase::operating;
    Op op = Op::join;
    bool started = false;
    bool gone = false;
    unsigned turn = 0;  // invalidates events of an earlier plan
    RendezvousState candidate;
    std::optional<JoinWish> wish;  // the wish behind the candidate
    std::int64_t ticket = 0;       // the ticket of that wish in the queue
    std::size_t read_version = 0;
    std::optional<RoundPlace> place;
  };
  struct Event {
    Period at;
    std::size_t agent;
    unsigned turn;
    std::uint64_t order;
    bool operator<(const Event& other) const {  // std::priority_queue pops the greatest first
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };

  Period range(Period from, Period to) {
    return Period(std::uniform_int_distribution<std::int64_t>(from.count(), to.count())(random_));
  }
  bool chance(double probability) { return std::bernoulli_distribution(probability)(random_); }
  Now time(const Agent& agent) const {
    return {UtcTime(std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)) + now_ + agent.skew,
            SteadyTime(1h) + now_};
  }
  void again(Agent& agent, Period after) {
    events_.push({now_ + after, agent.index, ++agent.turn, order_++});
  }

  void start_agent(Period after) {
    DynamicSettings settings;
    settings.min_nodes = plan_.min;
    settings.max_nodes = plan_.max;
    const auto number = static_cast<int>(agents_.size());
    auto agent = std::make_unique<Agent>(
        Node{fmt::format("10.0.0.{}", random_() % 40), number,
             plan_.badges ? local_id_of({}) : static_cast<int>(random_() % 2)},
        settings);
    agent->index = agents_.size();
    agent->skew = range(-3h, 3h);
    agents_.push_back(std::move(agent));
    events_.push({now_ + after, agents_.back()->index, 0, order_++});
  }
  void begin(Agent& agent, Op op) {
    agent.op = op;
    agent.phase = Phase::operating;
    agent.member.begin(op, time(agent));
    if (op == Op::join) agent.place.reset();
  }

  bool compare_set(std::size_t version, const RendezvousState& state) {
    if (version != version_) {
      ++lost_writes_;
      return false;
    }
    ++version_;
    register_ = plan_.through_text ? decode_state(encode_state(state).value()).value() : state;
    return true;
  }

  void turn(Agent& agent) {
    if (!std::exchange(agent.started, true)) begin(agent, Op::join);
    if (now_ < plan_.storm && strike(agent)) return;
    if (agent.phase == Phase::running) return watch(agent);
    if (agent.phase == Phase::writing) {
      if (!compare_set(agent.read_version, agent.candidate) && agent.wish && chance(0.7))
        return queue_up(agent);
      agent.phase = Phase::operating;  // ask again, whether the write won or lost
    }
    agent.read_version = version_;
    Step step = agent.member.next(register_, time(agent));
    if (agent.op == Op::keep_alive && step.is(Step::Kind::timed_out))
      step.kind = Step::Kind::done;  // the agent was frozen; the next keep-alive will do
    switch (step.kind) {
      case Step::Kind::write:
        agent.candidate = std::move(step.state);
        agent.wish = step.wish;
        if (step.wish && agent.ticket > register_.settled) fold(agent);
        agent.phase = Phase::writing;
        return again(agent, range(0ms, 50ms));  // leaves room for other agents' writes
      case Step::Kind::wait:
        return again(agent, std::chrono::duration_cast<Period>(step.until - time(agent).steady));
      case Step::Kind::done:
        return done(agent, step);
      default:
        ADD_FAILURE() << who(agent) << ": an operation ended with " << static_cast<int>(step.kind)
                      << ", " << register_.participants.size() << " participants, "
                      << register_.wait_list.size() << " wait, " << register_.redundancy_list.size()
                      << " spares, round " << register_.round
                      << (register_.complete ? " complete" : "");
    }
  }

  // Any agent may grant the wish from now on. The agent itself looks again after a while.
  void queue_up(Agent& agent) {
    agent.phase = Phase::operating;
    wishes_.push_back(agent.wish);
    agent.ticket = std::ssize(wishes_);
    agent.member.filed(*agent.wish);
    again(agent, range(0ms, 2s));
  }
  void fold(Agent& agent) {
    const auto all = std::span(wishes_).subspan(static_cast<std::size_t>(register_.settled));
    auto folded = agent.member.fold(register_, all, *agent.wish, time(agent));
    granted_ +=
        static_cast<std::size_t>(std::count(folded.granted.begin(), folded.granted.end(), true));
    agent.candidate = std::move(folded.state);
    agent.candidate.settled = std::ssize(wishes_);
  }

  // Strikes the agent with a random mishap. Returns true if the agent loses this turn.
  bool strike(Agent& agent) {
    if (!chance(0.01)) return false;
    if (chance(0.5) && alive() < plan_.agents + 2) start_agent(range(0s, 30s));
    if (chance(0.3) && alive() > plan_.min) {
      agent.gone = true;  // vanishes, maybe in the middle of a write
      return true;
    }
    if (chance(0.4)) {
      again(agent, range(0s, 40s));  // frozen; a pending write is still attempted afterwards
      return true;
    }
    if (agent.phase != Phase::running) return false;
    const bool leaves = chance(0.3) && alive() > plan_.min;
    begin(agent, leaves ? Op::withdraw : Op::join);
    again(agent, range(0ms, 100ms));
    return true;
  }
  std::size_t alive() const {
    std::size_t count = 0;
    for (const auto& agent : agents_)
      count += agent->gone ? 0 : 1;
    return count;
  }

  void done(Agent& agent, const Step& step) {
    agent.phase = Phase::running;
    if (agent.op == Op::withdraw) {
      agent.gone = true;
      return;
    }
    if (agent.op == Op::join) {
      agent.place = place_of(step.state, agent.member.self());
      check_round(agent, step.state);
    }
    again(agent, range(500ms, 1500ms));
  }

  // Acts like a running agent: renews the heartbeat and looks for waiting or lost nodes.
  void watch(Agent& agent) {
    const RendezvousState state = agent.member.sanitize(register_, time(agent));
    const bool mine = state.participants.contains(agent.member.self());
    const bool full = state.participants.size() == agent.place->nodes.size();
    if (!mine || !full || agent.member.waiting(state) > 0) {
      begin(agent, Op::join);
      return again(agent, range(0s, 2s));  // stopping the workers takes time
    }
    begin(agent, Op::keep_alive);
    again(agent, 0ms);
  }

  std::string who(const Agent& agent) const {
    return fmt::format("seed {}, {} to {} of {}, at {} s, {}", plan_.seed, plan_.min, plan_.max,
                       alive(), now_.count() / 1'000'000, to_text(agent.member.self()));
  }

  void check_round(const Agent& agent, const RendezvousState& state) {
    const RoundPlace& place = *agent.place;
    const std::string who =
        fmt::format("seed {}, {}, round {}", plan_.seed, to_text(agent.member.self()), place.round);
    ASSERT_GE(place.nodes.size(), plan_.min) << who;
    ASSERT_LE(place.nodes.size(), plan_.max) << who;
    ASSERT_TRUE(plan_.badges || std::is_sorted(place.nodes.begin(), place.nodes.end())) << who;
    ASSERT_EQ(place.nodes[place.rank], agent.member.self()) << who;
    for (const auto& [node, given] : state.participants)
      ASSERT_EQ(place.nodes.at(static_cast<std::size_t>(given)), node) << who;
    const auto [first, fresh] = rounds_.try_emplace(place.round, place.nodes);
    ASSERT_EQ(first->second, place.nodes) << who << ": others saw other members";
  }

  void check_end() {
    std::set<Node> running;
    std::set<std::int64_t> numbers;
    std::size_t spares = 0;
    for (const auto& agent : agents_) {
      if (agent->gone) continue;
      if (agent->place) {
        running.insert(agent->member.self());
        numbers.insert(agent->place->round);
      }
      spares += register_.redundancy_list.contains(agent->member.self()) ? 1 : 0;
    }
    const std::string who =
        fmt::format("seed {}, {} agents, {} to {}", plan_.seed, plan_.agents, plan_.min, plan_.max);
    if (alive() < plan_.min) {
      EXPECT_EQ(running.size(), 0U) << who;
      return;
    }
    EXPECT_EQ(running.size(), std::min(alive(), plan_.max)) << who;
    EXPECT_EQ(spares, alive() - running.size()) << who;
    ASSERT_EQ(numbers.size(), 1U) << who;
    const auto& members = rounds_.at(*numbers.begin());
    EXPECT_EQ(running, std::set<Node>(members.begin(), members.end())) << who;
  }

  Plan plan_;
  std::mt19937 random_;
  Period now_{0};
  std::uint64_t order_ = 0;
  std::priority_queue<Event> events_;
  std::vector<std::unique_ptr<Agent>> agents_;
  RendezvousState register_;
  std::size_t version_ = 0;
  std::size_t lost_writes_ = 0;
  std::vector<std::optional<JoinWish>> wishes_;  // the queue, in ticket order
  std::size_t granted_ = 0;
  std::map<std::int64_t, std::vector<Node>> rounds_;
};

Plan plan_of(unsigned seed) {
  std::mt19937 random(seed * 7919 + 1);
  Plan plan;
  plan.seed = seed;
  plan.agents = 1 + random() % (seed % 16 == 5 ? 50 : 10);
  plan.min = 1 + random() % plan.agents;
  plan.max = plan.min + (seed % 3 == 0 ? 0 : random() % (plan.agents + 2));
  plan.badges = seed % 2 == 1;
  plan.through_text = seed % 5 == 0 && plan.agents < 10;
  return plan;
}

TEST(DynamicStateSimulation, AllAgreeAndAllFindOneRound) {
  const char* const asked =
      std::getenv("LOCKSTEP_SIMULATIONS");  // set a larger number for a long run
  const auto seeds = static_cast<unsigned>(asked != nullptr ? std::atoi(asked) : 30);
  std::size_t rounds = 0;
  std::size_t lost = 0;
  std::size_t granted = 0;
  for (unsigned seed = 0; seed < seeds && !HasFailure(); ++seed) {
    Simulation simulation(plan_of(seed));
    simulation.run();
    rounds += simulation.rounds();
    lost += simulation.lost_writes();
    granted += simulation.granted();
  }
  // The seeds must produce enough events to be worth checking.
  EXPECT_GT(rounds, 3 * seeds);
  EXPECT_GT(lost, 20 * seeds);
  EXPECT_GT(granted, 3 * seeds);
  RecordProperty("rounds", static_cast<int>(rounds));
  RecordProperty("lost_writes", static_cast<int>(lost));
}

TEST(DynamicStateSimulation, FiftyAgentsComeTogether) {
  Simulation simulation({.seed = 1, .agents = 50, .min = 50, .max = 50, .storm = 0s});
  simulation.run();
  EXPECT_EQ(simulation.rounds(), 1U);
}

}  // namespace
}  // namespace lockstep::rendezvous::dynamic
