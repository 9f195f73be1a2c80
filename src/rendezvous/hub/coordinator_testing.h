// Helpers for tests of the coordinator: agents without connections, and a clock set by hand.
#pragma once

#include "rendezvous/hub/coordinator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace lockstep::rendezvous::hub::testing {
using namespace std::chrono_literals;

// One agent and all frames sent to it, without heartbeats.
struct FakeAgent {
  PeerId peer = 0;
  Nonce id{};
  Join offer;
  std::vector<Frame> got;
  std::string status;
  bool closed = false;
  int heard = 0;  // messages in both directions

  template <class T>
  const T* last() const {
    return got.empty() ? nullptr : std::get_if<T>(&got.back());
  }
  const Round* round() const {
    const auto* placed = last<Placed>();
    return placed == nullptr ? nullptr : &placed->round;
  }
};

class CoordinatorFixture {
 public:
  explicit CoordinatorFixture(CoordinatorSettings with) : settings(std::move(with)) {
    settings.run_id = "job";
    settings.host = id_of("a");
    hub.emplace(settings, now);
  }
  static Nonce id_of(const std::string& name) {
    Nonce id{};
    std::copy_n(name.begin(), std::min(name.size(), id.size()), id.begin());
    return id;
  }
  FakeAgent& arrive(const std::string& name) {
    FakeAgent& agent = agents[name];
    agent = {};
    agent.peer = ++last_peer;
    agent.id = id_of(name);
    agent.offer.host = name;
    agent.offer.address = "addr-" + name;
    agent.offer.min_nodes = static_cast<std::uint32_t>(settings.min_nodes);
    agent.offer.max_nodes = static_cast<std::uint32_t>(settings.max_nodes);
    agent.offer.max_restarts = 3;
    agent.offer.replacement = replacement;
    by_peer[agent.peer] = &agent;
    hub->arrive(agent.peer, agent.id, name, now);
    deliver();
    return agent;
  }
  FakeAgent& join(const std::string& name) {
    FakeAgent& agent = agents.contains(name) ? agents[name] : arrive(name);
    say(name, agent.offer);
    return agent;
  }
  void join_all(std::initializer_list<const char*> names) {
    for (const char* name : names)
      join(name);
  }
  void say(const std::string& name, Frame frame) {
    FakeAgent& agent = agents.at(name);
    ++agent.heard;
    hub->hear(agent.peer, now);
    last_taken = hub->take(agent.peer, std::move(frame), now);
    deliver();
  }
  void lose(const std::string& name, const std::string& why = "the connection was closed") {
    hub->lose(agents.at(name).peer, why, now);
    deliver();
  }
  // Advances the clock. Every node except the silent ones shows a sign of life every 100 ms.
  void pass(Ms time, std::initializer_list<const char*> silent = {}) {
    for (Ms done{0}; done < time; done += 100ms) {
      now += 100ms;
      for (auto& [name, agent] : agents) {
        if (std::find(silent.begin(), silent.end(), name) == silent.end())
          hub->hear(agent.peer, now);
      }
      if (now >= hub->next_time()) hub->tick(now);
      deliver();
    }
  }
  // Plays the network, and answers for rank 0's store.
  void deliver() {
    hub->conclude();
    for (auto output = hub->take_output(); !output.empty(); output = hub->take_output()) {
      for (const auto& out : output) {
        FakeAgent& agent = *by_peer.at(out.to);
        if (out.close) closed.insert(out.to);
        if (agent.peer != out.to) continue;
        if (out.bytes) hand_over(agent, *out.bytes);
        if (out.close) agent.closed = true;
      }
    }
  }
  void hand_over(FakeAgent& agent, const std::string& bytes) {
    const auto frame = parse_frame(std::string_view(bytes).substr(4));
    ASSERT_TRUE(frame);
    if (const auto* beat = std::get_if<Beat>(&*frame)) {
      agent.status = beat->status;
      return;
    }
    ++agent.heard;
    agent.got.push_back(*frame);
    const auto* wanted = std::get_if<StoreWanted>(&*frame);
    if (wanted == nullptr || mute_store) return;
    ++agent.heard;
    (void)hub->take(agent.peer, StoreOffer{wanted->round, agent.offer.address, 7000, store_error},
                    now);
  }
  int rank(const std::string& name) const {
    const Round* round = agents.at(name).round();
    return round == nullptr ? -1 : round->group_rank;
  }
  std::string told(const std::string& name) const {
    const auto* over = agents.at(name).last<Interrupted>();
    return over == nullptr ? "-" : (over->end ? "end: " : "rejoin: ") + over->why;
  }
  std::string refused(const std::string& name) const {
    const auto* refusal = agents.at(name).last<Refusal>();
    return refusal == nullptr ? "-" : refusal->text;
  }

  CoordinatorSettings settings;
  Time now{std::chrono::hours(1)};
  std::optional<Coordinator> hub;
  std::map<std::string, FakeAgent> agents;
  std::map<PeerId, FakeAgent*> by_peer;
  std::set<PeerId> closed;  // includes replaced connections
  PeerId last_peer = 0;
  Status last_taken;
  bool mute_store = false;
  bool replacement = false;  // applies to agents that arrive later
  std::string store_error;
};

inline CoordinatorSettings nodes(std::size_t least, std::size_t most) {
  CoordinatorSettings settings;
  settings.min_nodes = least;
  settings.max_nodes = most;
  return settings;
}

// Adds an agent that claims a rank in round 6, a round of `nodes` nodes.
inline void survive(CoordinatorFixture& f, const std::string& name, int rank, int nodes) {
  auto& offer = f.arrive(name).offer;
  offer.last_round = 6;
  offer.last_rank = rank;
  offer.last_nodes = nodes;
}

inline CoordinatorSettings successor(std::size_t least, std::size_t most) {
  auto settings = nodes(least, most);
  settings.takeover = true;
  settings.first_round = 7;
  return settings;
}

}  // namespace lockstep::rendezvous::hub::testing
