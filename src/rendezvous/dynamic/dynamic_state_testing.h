// Helpers for the tests of the state machine: clocks set by hand, states, and members.
#pragma once

#include "rendezvous/dynamic/dynamic_state.h"

#include <gtest/gtest.h>

#include <chrono>
#include <initializer_list>
#include <set>

namespace lockstep::rendezvous::dynamic::testing {
using namespace std::chrono_literals;

inline const Node kA{"10.0.0.1", 7, 0};
inline const Node kB{"10.0.0.2", 5, 0};
inline const Node kC{"10.0.0.3", 3, 0};
inline const Node kD{"10.0.0.4", 1, 0};

// Two clocks set by hand. Tests put the wall clock far off to show that no rule depends on the
// clock.
struct Clock {
  Now now{UtcTime(std::chrono::sys_days(std::chrono::year(2026) / 1 / 2)), SteadyTime(1h)};
  void pass(Period time) {
    now.wall += time;
    now.steady += time;
  }
};

class DynamicState : public ::testing::TestWithParam<bool> {
 protected:
  DynamicState() { settings_.exact = GetParam(); }

  DynamicMember member(const Node& self, std::size_t min, std::size_t max) {
    settings_.min_nodes = min;
    settings_.max_nodes = max;
    DynamicMember made(self, settings_);
    made.begin(Op::join, clock_.now);
    return made;
  }
  // Returns a state whose participants have fresh heartbeats; complete: with their ranks.
  RendezvousState state(std::initializer_list<Node> participants, bool complete) {
    RendezvousState made;
    made.round = 3;
    made.complete = complete;
    for (const Node& node : participants)
      made.participants[node] = complete ? static_cast<std::int64_t>(made.participants.size()) : 0;
    if (complete && !settings_.exact)
      made.completion = Completion{3, static_cast<std::int64_t>(participants.size())};
    for (const Node& node : participants)
      made.last_heartbeats[node] = clock_.now.wall;
    return made;
  }
  void add(RendezvousState& to, std::set<Node> RendezvousState::*list, const Node& node) {
    (to.*list).insert(node);
    to.last_heartbeats[node] = clock_.now.wall;
  }
  // Renews all heartbeats: every node is alive.
  void beat(RendezvousState& state) {
    for (auto& [node, time] : state.last_heartbeats)
      time = clock_.now.wall;
  }

  Clock clock_;
  DynamicSettings settings_;
};

}  // namespace lockstep::rendezvous::dynamic::testing
