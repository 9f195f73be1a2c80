// Several agents of the `lockstep` backend on one loop, over real sockets, with short periods.
#pragma once

#include "io/listen.h"
#include "rendezvous/hub/hub_backend.h"

#include <gtest/gtest.h>

#include <deque>

namespace lockstep::rendezvous::hub::testing {
using namespace std::chrono_literals;

struct Agent {
  std::unique_ptr<HubBackend> backend;
  std::optional<Result<void>> opened;
  std::optional<Result<std::optional<Round>>> joined;
  std::optional<Result<void>> finished;
  std::optional<Result<void>> left;
  std::optional<std::vector<NodeReport>> reports;
  std::vector<Interruption> interruptions;

  const Round& round() const { return **joined.value(); }
  bool placed() const { return joined && joined->has_value() && joined->value().has_value(); }
};

class HubBackendTest : public ::testing::Test {
 protected:
  HubBackendTest() : port(io::open_listener("127.0.0.1", 0, 1).value().port) {
    settings.min_nodes = 2;
    settings.max_nodes = 2;
    settings.connect_timeout = 5000ms;
    settings.join_timeout = 10'000ms;
    settings.last_call_timeout = 50ms;
    settings.close_timeout = 5000ms;
    settings.keep_alive_interval = 40ms;
    settings.lost_patience = 150ms;
    settings.offer.max_restarts = 3;
    settings.run_id = "job";
  }
  ~HubBackendTest() override { agents.clear(); }

  Agent& start(const std::string& name) { return start(name, loop); }
  Agent& start(const std::string& name, io::Loop& at) {
    Agent& agent = agents.emplace_back();
    settings.endpoint = {"127.0.0.1", port};
    settings.offer.host = name;
    settings.local_addr = address.empty() ? "addr-" + name : address;
    settings.offer_store = [](const std::string& addr) { return StorePlace{addr, 7000}; };
    agent.backend = std::make_unique<HubBackend>(at, settings);
    agent.backend->on_interruption(
        [&](const Interruption& i) { agent.interruptions.push_back(i); });
    agent.backend->open([&](Result<void> done) { agent.opened = std::move(done); });
    return agent;
  }
  Agent& open(const std::string& name) {
    Agent& agent = start(name);
    until([&] { return agent.opened.has_value(); });
    EXPECT_TRUE(!agent.opened || *agent.opened) << agent.opened->error().message;
    return agent;
  }
  static void join(Agent& agent) {
    agent.joined.reset();
    agent.interruptions.clear();
    agent.backend->join([&](auto result) { agent.joined = std::move(result); });
    EXPECT_FALSE(agent.joined);  // not inside the call
  }
  static void finish(Agent& agent) {
    agent.backend->finish([&](Result<void> done) { agent.finished = std::move(done); });
  }
  static void leave(Agent& agent, Departure how) {
    agent.backend->leave(how, [&](Result<void> done) { agent.left = std::move(done); });
  }
  void meet(std::initializer_list<Agent*> all) {
    for (Agent* agent : all)
      join(*agent);
    until(
        [&] { return std::all_of(all.begin(), all.end(), [](Agent* a) { return a->placed(); }); });
  }
  template <class Fact>
  void until(Fact fact) {
    const auto limit = io::Clock::now() + 20s;
    while (!fact() && io::Clock::now() < limit)
      turn();
    ASSERT_TRUE(fact());
  }
  void pass(io::Duration time) {
    const auto limit = io::Clock::now() + time;
    while (io::Clock::now() < limit)
      turn();
  }
  void turn() {
    if (frozen != &loop) loop.run_once();
    if (frozen != &far_loop) far_loop.run_once();
  }

  io::Loop loop;
  io::Loop far_loop;  // stands for another process; either loop can be frozen
  const io::Loop* frozen = nullptr;
  int port;
  std::string address;  // All agents have this address. Empty: each agent has another one.
  HubSettings settings;
  std::deque<Agent> agents;
};

}  // namespace lockstep::rendezvous::hub::testing
