// Agents of the static backend on one loop, over real sockets, with short periods.
#pragma once

#include "io/listen.h"
#include "rendezvous/static_backend/static_backend.h"

#include <gtest/gtest.h>

#include <deque>

namespace lockstep::rendezvous::static_backend::testing {
using namespace std::chrono_literals;

struct Agent {
  std::unique_ptr<StaticBackend> backend;
  std::optional<Result<void>> opened;
  std::optional<Result<std::optional<Round>>> joined;
  std::optional<Result<void>> left;
  std::optional<Interruption> interrupted;
};

class StaticBackendTest : public ::testing::Test {
 protected:
  StaticBackendTest() : port(io::open_listener("127.0.0.1", 0, 1).value().port) {
    settings.nodes = 2;
    settings.heartbeat_interval = 50ms;
    settings.close_timeout = 2s;
  }
  Agent& open(int node_rank) { return open(node_rank, loop); }
  Agent& open(int node_rank, io::Loop& on) {
    settings.master = {"127.0.0.1", port};
    settings.run_id = "job";
    settings.node_rank = node_rank;
    settings.offer.host = "n" + std::to_string(node_rank);
    Agent& agent = agents.emplace_back();
    agent.backend = std::make_unique<StaticBackend>(on, settings);
    agent.backend->on_interruption([&](const Interruption& what) { agent.interrupted = what; });
    agent.backend->open([&](Result<void> done) { agent.opened = std::move(done); });
    return agent;
  }
  void join(Agent& agent) {
    agent.joined.reset();
    agent.interrupted.reset();
    agent.backend->join([&](auto result) { agent.joined = std::move(result); });
  }
  // Brings both agents into the first round.
  void meet(Agent& a, Agent& b) {
    until([&] { return a.opened && b.opened; });
    join(a);
    join(b);
    until([&] { return a.joined && b.joined; });
    ASSERT_TRUE(*a.joined) << a.joined->error().message;
    ASSERT_TRUE(*b.joined) << b.joined->error().message;
  }
  void leave(Agent& agent, Departure how) {
    agent.backend->leave(how, [&](Result<void> done) { agent.left = std::move(done); });
  }
  template <class Fact>
  void until(Fact fact) {
    const auto limit = io::Clock::now() + 10s;
    while (!fact() && io::Clock::now() < limit)
      run_once();
    ASSERT_TRUE(fact());
  }
  void run_for(io::Duration time) {
    const auto end = io::Clock::now() + time;
    until([&] { return io::Clock::now() >= end; });
  }
  void run_once() {
    loop.run_once();
    if (!frozen) other_loop.run_once();
  }

  io::Loop loop;
  io::Loop other_loop;
  bool frozen = false;  // freezes the agents on other_loop
  int port;
  StaticSettings settings;
  std::deque<Agent> agents;
};

}  // namespace lockstep::rendezvous::static_backend::testing
