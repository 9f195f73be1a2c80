// Several agents of the c10d backend on one loop, over real sockets, with short periods.
#pragma once

#include "io/listen.h"
#include "io/loop_testing.h"
#include "rendezvous/dynamic/c10d_place.h"
#include "rendezvous/dynamic/dynamic_backend.h"

#include <gtest/gtest.h>

#include <deque>

namespace lockstep::rendezvous::dynamic::testing {
using namespace std::chrono_literals;

// A c10d place that hides its state while `silent`. While `contended`, another node always writes
// first. `on_answer` is called once, between an answer of the store and its use.
class SilentPlace : public C10dPlace, private StateStore {
 public:
  using C10dPlace::C10dPlace;
  StateStore& state() override { return *this; }
  bool silent = false;
  bool contended = false;
  std::function<void()> on_answer;

 private:
  void read(Done<Stored> done) override {
    if (!silent)
      return C10dPlace::state().read([this, done = std::move(done)](auto stored) {
        if (const auto call = std::exchange(on_answer, nullptr)) call();
        done(std::move(stored));
      });
    keys().probe("any", [done](const auto&) { done(fail(Errc::timeout, "no answer")); });
  }
  void write(const Stored& before, const std::string& text, Done<Stored> done) override {
    if (contended) return C10dPlace::state().read(std::move(done));
    C10dPlace::state().write(before, text, std::move(done));
  }
};

struct Agent {
  SilentPlace* place = nullptr;
  std::unique_ptr<DynamicBackend> backend;
  std::optional<Result<void>> opened;
  std::optional<Result<std::optional<Round>>> joined;
  std::optional<Result<void>> finished;
  std::optional<Result<void>> left;
  std::optional<Interruption> interrupted;
  std::optional<std::vector<NodeReport>> reports;
};

class DynamicBackendTest : public ::testing::Test {
 protected:
  DynamicBackendTest() : port(io::open_listener("127.0.0.1", 0, 1).value().port) {
    settings.run_id = "job";
    settings.dynamic.min_nodes = 2;
    settings.dynamic.max_nodes = 2;
    settings.dynamic.poll_interval = 5ms;
    settings.dynamic.keep_alive_interval = 40ms;
    settings.dynamic.last_call_timeout = 60ms;
    settings.read_timeout = 5000ms;
  }
  Agent& open(const std::string& name) {
    Agent& agent = agents.emplace_back();
    settings.offer.host = name;
    auto place = std::make_unique<SilentPlace>(
        loop, C10dPlaceSettings{.endpoint = {"127.0.0.1", port},
                                .run_id = "job",
                                .is_host = is_host,
                                .local_addr = name,
                                .connect_timeout = settings.read_timeout,
                                .read_timeout = settings.read_timeout});
    agent.place = place.get();
    agent.backend = std::make_unique<DynamicBackend>(loop, std::move(place), settings,
                                                     [](const std::string& addr) {
                                                       return StorePlace{addr, 4711};
                                                     });
    agent.backend->on_interruption([&](const Interruption& what) { agent.interrupted = what; });
    agent.backend->open([&](Result<void> done) { agent.opened = std::move(done); });
    until([&] { return agent.opened.has_value(); });
    return agent;
  }
  void join(Agent& agent) {
    agent.joined.reset();
    agent.interrupted.reset();
    agent.backend->join([&](auto result) { agent.joined = std::move(result); });
  }
  void join_all(std::initializer_list<Agent*> all) {
    for (Agent* agent : all)
      join(*agent);
    until([&] {
      return std::all_of(all.begin(), all.end(),
                         [](const Agent* agent) { return agent->joined.has_value(); });
    });
  }
  static const Round& round(const Agent& agent) { return **agent.joined.value(); }
  template <class Fact>
  void until(Fact fact) {
    ASSERT_TRUE(io::run_until(loop, fact));
  }

  io::Loop loop;
  int port;
  std::optional<bool> is_host;
  DynamicBackendSettings settings;
  std::deque<Agent> agents;
};

}  // namespace lockstep::rendezvous::dynamic::testing
