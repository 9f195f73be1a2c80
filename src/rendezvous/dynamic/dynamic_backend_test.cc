// Several agents of the c10d backend on one loop, over real sockets, with short periods.
#include "rendezvous/dynamic/dynamic_backend.h"

#include "io/listen.h"

#include <gtest/gtest.h>

#include <deque>

#include "rendezvous/dynamic/c10d_place.h"
#include "rendezvous/dynamic/state_codec.h"

namespace lockstep::rendezvous {
namespace {
using namespace std::chrono_literals;

// A c10d place whose state is not to be had while `silent`.
class SilentPlace : public C10dPlace, private StateStore {
 public:
  using C10dPlace::C10dPlace;
  StateStore& state() override { return *this; }
  bool silent = false;

 private:
  void read(Done<Stored> done) override {
    if (!silent) return C10dPlace::state().read(std::move(done));
    keys().probe("any", [done](const auto&) { done(fail(Errc::timeout, "no answer")); });
  }
  void write(const Stored& before, const std::string& text, Done<Stored> done) override {
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
    const auto limit = io::Clock::now() + 20s;
    while (!fact() && io::Clock::now() < limit)
      loop.run_once();
    ASSERT_TRUE(fact());
  }

  io::Loop loop;
  int port;
  std::optional<bool> is_host;
  DynamicBackendSettings settings;
  std::deque<Agent> agents;
};

TEST_F(DynamicBackendTest, TwoMeetAThirdWaitsAndTheNextRoundHasThemAll) {
  settings.dynamic.max_nodes = 3;
  settings.offer.local_world_size = 2;
  Agent& b = open("b");
  Agent& a = open("a");
  ASSERT_TRUE(*b.opened) << b.opened->error().message;
  ASSERT_TRUE(*a.opened) << a.opened->error().message;
  EXPECT_TRUE(b.place->hosts());
  EXPECT_FALSE(a.place->hosts());
  join_all({&b, &a});
  EXPECT_EQ(round(a).group_rank, 0);
  EXPECT_EQ(round(b).group_rank, 1);
  EXPECT_EQ(round(b).base_rank, 2);
  EXPECT_EQ(round(b).world_size, 4);
  EXPECT_EQ(round(b).master_addr, "a");
  EXPECT_EQ(round(b).master_port, 4711);
  Agent& c = open("c");
  join(c);
  until([&] { return a.interrupted && b.interrupted; });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin);
  EXPECT_EQ(a.interrupted->why, "1 node waits to join");
  join(a);
  join(b);
  until([&] { return a.joined && b.joined && c.joined; });
  EXPECT_EQ(round(c).number, 1);
  EXPECT_EQ(round(c).group_rank, 2);
  EXPECT_EQ(round(c).restarts, 0);
}

// All at once: whoever tried again at once after a lost write would lose again to all the others.
TEST_F(DynamicBackendTest, ManyDoNotGetInOneAnothersWay) {
  constexpr std::size_t kMany = 80;
  settings.dynamic.min_nodes = settings.dynamic.max_nodes = kMany;
  settings.dynamic.poll_interval = 1s;
  settings.dynamic.keep_alive_interval = 60s;
  for (std::size_t i = 0; i < kMany; ++i)
    open("n" + std::to_string(i));
  const auto requests = [&] { return agents.front().place->server()->stats().requests_total; };
  const auto before = requests();
  for (Agent& agent : agents)
    join(agent);
  until([&] {
    return std::all_of(agents.begin(), agents.end(),
                       [](const Agent& agent) { return agent.joined.has_value(); });
  });
  EXPECT_LT(requests() - before, 38 * kMany) << "without pauses: some 40 writes a node alone";
}

TEST_F(DynamicBackendTest, AFailureIsToldAtOnceAndCountedOnce) {
  settings.dynamic.poll_interval = 10s;  // nobody may depend on asking again and again
  settings.dynamic.keep_alive_interval = 60s;
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  const auto start = io::Clock::now();
  b.backend->tell_failure("rank 1 on b failed (exitcode: 3)", false);
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin);
  EXPECT_EQ(a.interrupted->why, "rank 1 on b failed (exitcode: 3)");
  join_all({&b, &a});
  EXPECT_LT(io::Clock::now() - start, 5s);
  EXPECT_EQ(round(a).number, 1);
  EXPECT_EQ(round(a).restarts, 1);
  EXPECT_EQ(round(b).restarts, 1);
  a.backend->tell_failure("both at", false);
  b.backend->tell_failure("the same time", false);
  join_all({&b, &a});
  EXPECT_EQ(round(a).restarts, 2);
  EXPECT_EQ(round(b).restarts, 2);
}

TEST_F(DynamicBackendTest, TheLastFailureEndsAllAndEveryNodeHasAllReports) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  b.backend->tell_failure("rank 1 on b failed", true);
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::end);
  for (Agent* agent : {&a, &b})
    agent->backend->exchange_reports(
        {agent == &a ? "a" : "b", agent == &a ? 0 : 1, "[]"}, 5s,
        [agent](auto reports) { agent->reports = std::move(reports); });
  until([&] { return a.reports && b.reports; });
  ASSERT_EQ(a.reports->size(), 2U);
  EXPECT_EQ(a.reports->front().host, "b") << "who failed first comes first";
  EXPECT_EQ(b.reports->front().host, "b");
  for (Agent* agent : {&a, &b})
    agent->backend->leave(Departure::failed,
                          [agent](const Result<void>& left) { agent->left = left; });
  until([&] { return b.left.has_value(); });
  EXPECT_FALSE(a.left) << "the host stays while a guest is there";
  b.backend.reset();
  until([&] { return a.left.has_value(); });
}

TEST_F(DynamicBackendTest, ANodeThatIsGoneEndsOrReformsTheRound) {
  settings.dynamic.min_nodes = 1;
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  b.backend.reset();
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin);
  EXPECT_EQ(a.interrupted->why, "b is gone (no heartbeat for 0 s)");
  join_all({&a});
  EXPECT_EQ(round(a).group_world_size, 1);
  EXPECT_EQ(round(a).restarts, 0);
}

// Who looks later sees only that another one joins again.
TEST_F(DynamicBackendTest, EveryNodeHearsWhichOneIsGone) {
  settings.dynamic.max_nodes = 3;
  settings.dynamic.keep_alive_interval = 200ms;
  Agent& a = open("a");
  Agent& b = open("b");
  settings.dynamic.poll_interval = 250ms;
  Agent& c = open("c");
  join_all({&a, &b, &c});
  b.backend.reset();
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->why, "b is gone (no heartbeat for 0 s)");
  join(a);
  until([&] { return c.interrupted.has_value(); });
  EXPECT_EQ(c.interrupted->kind, Interruption::Kind::rejoin);
  EXPECT_EQ(c.interrupted->why, "b is gone (no heartbeat for 0 s)");
  join(c);
  until([&] { return a.joined && c.joined; });
  EXPECT_EQ(round(c).group_world_size, 2);
  EXPECT_EQ(round(c).restarts, 0);
}

TEST_F(DynamicBackendTest, TooFewAreLeft) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  b.backend.reset();
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::end);
  EXPECT_NE(a.interrupted->why.find("1 of at least 2 nodes are left"), std::string::npos);
}

// Between its leaving of the old round and its joining of the next.
TEST_F(DynamicBackendTest, ASurvivorThatJoinsAgainIsNotGone) {
  settings.dynamic.max_nodes = 3;
  settings.dynamic.poll_interval = 300ms;
  settings.dynamic.keep_alive_interval = 60s;
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  b.backend.reset();
  auto* server = a.place->server();
  const std::string key = "/torch.rendezvous.job";
  auto state = decode_state(*server->engine().get(key)).value();
  const Node node = state.participants.rbegin()->first;
  ASSERT_EQ(node.addr, "b");
  state.participants.erase(node);
  server->set(key, encode_state(state).value());
  const auto before = server->stats().requests_total;
  until([&] { return server->stats().requests_total > before; });  // a looks
  state.wait_list.insert(node);
  server->set(key, encode_state(state).value());
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin) << a.interrupted->why;
}

TEST_F(DynamicBackendTest, ASpareTakesTheLostNodesRank) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  Agent& c = open("0");  // its address sorts first
  join(c);
  until([&] { return c.backend->waiting_for().find("is a spare") != std::string::npos; });
  b.backend.reset();
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin);
  join(a);
  until([&] { return a.joined && c.joined; });
  EXPECT_EQ(round(a).group_rank, 0);
  EXPECT_EQ(round(c).group_rank, 1);
  EXPECT_EQ(round(c).restarts, 0);
}

TEST_F(DynamicBackendTest, HeartbeatsGoOnInTheBarrier) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  a.backend->finish([&](const Result<void>& all) { a.finished = all; });
  const auto start = io::Clock::now();
  until([&] { return io::Clock::now() > start + 400ms; });
  EXPECT_FALSE(b.interrupted);
  EXPECT_FALSE(a.finished);
  b.backend->finish([&](const Result<void>& all) { b.finished = all; });
  until([&] { return a.finished && b.finished; });
  EXPECT_TRUE(*a.finished);
  EXPECT_FALSE(a.interrupted);
}

TEST_F(DynamicBackendTest, AFailureElsewhereReachesTheBarrier) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  a.backend->finish([&](const Result<void>& all) { a.finished = all; });
  b.backend->tell_failure("rank 1 on b failed", false);
  until([&] { return a.interrupted.has_value(); });
  join_all({&a, &b});
  EXPECT_FALSE(a.finished);
  EXPECT_EQ(round(a).number, 1);
}

TEST_F(DynamicBackendTest, JoinTimesOut) {
  settings.dynamic.join_timeout = 50ms;
  Agent& a = open("a");
  join(a);
  until([&] { return a.joined.has_value(); });
  EXPECT_EQ(a.joined->error().code, Errc::timeout);
  EXPECT_EQ(a.joined->error().message,
            "joining timed out: 1 of at least 2 nodes had joined the rendezvous 'job'");
}

TEST_F(DynamicBackendTest, WhoIsStoppedWaitsForNobody) {
  Agent& a = open("a");
  join(a);
  a.backend->leave(Departure::stopped, [&](const Result<void>& left) { a.left = left; });
  until([&] { return a.left.has_value(); });
  EXPECT_TRUE(*a.left);
  EXPECT_EQ(a.joined->error().code, Errc::canceled);
  Agent& b = open("b");
  Agent& c = open("c");
  join_all({&b, &c});
  EXPECT_EQ(round(b).group_world_size, 2);
}

TEST_F(DynamicBackendTest, WhoIsStoppedSaysSo) {
  settings.dynamic.keep_alive_interval = 60s;
  for (const std::size_t min : {1, 2}) {
    agents.clear();
    settings.dynamic.min_nodes = min;
    Agent& a = open("a");
    Agent& b = open("b");
    join_all({&a, &b});
    b.backend->leave(Departure::stopped, [&](const Result<void>& left) { b.left = left; });
    until([&] { return a.interrupted && b.left; });
    EXPECT_EQ(a.interrupted->kind, min == 1 ? Interruption::Kind::rejoin : Interruption::Kind::end);
    EXPECT_EQ(a.interrupted->why, "b has left: it was told to stop");
    const auto start = io::Clock::now();
    a.backend->exchange_reports({"a", 0, "[]"}, 5s,
                                [&](auto reports) { a.reports = std::move(reports); });
    until([&] { return a.reports.has_value(); });
    EXPECT_LT(io::Clock::now() - start, 2s) << "nothing is to come from b";
  }
}

TEST_F(DynamicBackendTest, WhoCannotBeginTheRoundSaysSo) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  b.backend->leave(Departure::failed, [&](Result<void> done) { b.left = std::move(done); });
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::end);
  EXPECT_EQ(a.interrupted->why, "b has left: it could not start its workers");
}

// Cut off for so long that the others have formed a round without it.
TEST_F(DynamicBackendTest, WhoWasGivenUpFailsAlone) {
  settings.dynamic.min_nodes = 1;
  Agent& a = open("a");
  settings.dynamic.keep_alive_interval = 60s;
  Agent& b = open("b");
  join_all({&a, &b});
  until([&] { return a.interrupted.has_value(); });
  join_all({&a});
  EXPECT_EQ(round(a).group_world_size, 1);
  b.backend->leave(Departure::failed, [&](const Result<void>& left) { b.left = left; });
  until([&] { return b.left.has_value(); });
  EXPECT_TRUE(*b.left);
  EXPECT_FALSE(a.interrupted);
  Agent& c = open("c");
  join(c);
  until([&] { return a.interrupted.has_value(); });
  join(a);
  until([&] { return a.joined && c.joined; });
  EXPECT_EQ(round(c).group_world_size, 2);
}

TEST_F(DynamicBackendTest, WhoGetsNoAnswerWhileJoiningClosesNothing) {
  settings.dynamic.min_nodes = 1;
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  b.place->silent = true;
  join(b);
  until([&] { return b.joined.has_value(); });
  EXPECT_EQ(b.joined->error().code, Errc::timeout);
  b.place->silent = false;
  b.backend->leave(Departure::failed, [&](const Result<void>& left) { b.left = left; });
  until([&] { return a.interrupted && b.left; });
  EXPECT_TRUE(*b.left);
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin);
  join_all({&a});
  EXPECT_EQ(round(a).group_world_size, 1);
}

TEST_F(DynamicBackendTest, NamesOfNodesCannotSteerTheTerminal) {
  Agent& a = open("a\x1b[2J\n");
  join(a);
  const std::string shown = "a\\x1b[2J\\x0a";
  until([&] { return a.backend->waiting_for().find(shown) != std::string::npos; });
  EXPECT_EQ(a.backend->waiting_for().find('\x1b'), std::string::npos);
}

TEST_F(DynamicBackendTest, ReportsDoNotQueueBehindTheBarrier) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  a.backend->finish([&](const Result<void>& all) { a.finished = all; });
  b.backend->tell_failure("rank 1 on b failed", true);
  until([&] { return a.interrupted.has_value(); });
  const auto start = io::Clock::now();
  for (Agent* agent : {&a, &b})
    agent->backend->exchange_reports({"x", agent == &a ? 0 : 1, "[]"}, 10s, [agent](auto reports) {
      agent->reports = std::move(reports);
    });
  until([&] { return a.reports && b.reports; });
  EXPECT_LT(io::Clock::now() - start, 5s);
  EXPECT_EQ(a.reports->size(), 2U);
}

TEST_F(DynamicBackendTest, WhoTiresOfTheBarrierIsNotMissed) {
  settings.exit_barrier_timeout = 1s;
  Agent& b = open("b");
  Agent& a = open("a");
  join_all({&a, &b});
  a.backend->finish([&](const Result<void>& all) { a.finished = all; });
  until([&] { return a.finished.has_value(); });
  EXPECT_FALSE(*a.finished);
  a.backend->leave(Departure::succeeded, [&](const Result<void>& left) { a.left = left; });
  until([&] { return a.left.has_value(); });
  a.backend.reset();
  const auto start = io::Clock::now();
  until([&] { return io::Clock::now() > start + 400ms; });
  EXPECT_FALSE(b.interrupted);
}

// As a torchrun agent does after its last failure.
TEST_F(DynamicBackendTest, WhoeverClosesDoesNotComeToTheBarrier) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  a.backend->finish([&](const Result<void>& all) { a.finished = all; });
  b.backend->leave(Departure::succeeded, [&](const Result<void>& left) { b.left = left; });
  until([&] { return a.finished.has_value(); });
  EXPECT_FALSE(*a.finished);
  EXPECT_FALSE(a.interrupted);
}

TEST_F(DynamicBackendTest, ClosedIsFinalAndSparesEndWell) {
  settings.dynamic.min_nodes = 1;
  settings.dynamic.max_nodes = 1;
  settings.dynamic.close_timeout = 50ms;
  Agent& a = open("a");
  join_all({&a});
  Agent& spare = open("spare");
  join(spare);
  until([&] { return spare.backend->waiting_for().find("is a spare") != std::string::npos; });
  a.backend->leave(Departure::succeeded, [&](const Result<void>& left) { a.left = left; });
  until([&] { return a.left && spare.joined; });
  EXPECT_FALSE(spare.joined->value());
  Agent& late = open("late");
  join(late);
  until([&] { return late.joined.has_value(); });
  EXPECT_EQ(late.joined->error().code, Errc::canceled);
}

// Also whoever asks it just then, whose own error says less.
TEST_F(DynamicBackendTest, ALostStoreEndsEverything) {
  settings.dynamic.max_nodes = 3;
  settings.dynamic.min_nodes = 3;
  Agent& host = open("a");
  Agent& waiting = open("b");
  join(waiting);
  host.backend.reset();
  until([&] { return waiting.joined.has_value(); });
  EXPECT_EQ(waiting.joined->error().code, Errc::unavailable);
  EXPECT_TRUE(
      waiting.joined->error().message.starts_with("the store at 127.0.0.1:" + std::to_string(port) +
                                                  " is lost: its host is gone or has left ("))
      << waiting.joined->error().message;
}

TEST_F(DynamicBackendTest, AGuestInARoundHearsOfTheLostStore) {
  Agent& host = open("a");
  Agent& guest = open("b");
  join_all({&host, &guest});
  host.backend.reset();
  until([&] { return guest.interrupted.has_value(); });
  EXPECT_EQ(guest.interrupted->kind, Interruption::Kind::end);
  EXPECT_NE(guest.interrupted->why.find("is lost"), std::string::npos);
}

TEST_F(DynamicBackendTest, ACorruptStateIsNeverOverwritten) {
  Agent& a = open("a");
  a.place->server()->set("/torch.rendezvous.job", "bm9uc2Vuc2U=");
  join(a);
  until([&] { return a.joined.has_value(); });
  EXPECT_EQ(a.joined->error().code, Errc::corrupt);
  EXPECT_EQ(a.place->server()->engine().get("/torch.rendezvous.job"), "bm9uc2Vuc2U=");
}

TEST_F(DynamicBackendTest, NobodyHosts) {
  is_host = false;
  settings.read_timeout = 100ms;
  Agent& a = open("a");
  ASSERT_FALSE(*a.opened);
  EXPECT_NE(a.opened->error().message.find("Connection refused"), std::string::npos);
}

TEST_F(DynamicBackendTest, ATakenPortIsFinalForADeclaredHost) {
  Agent& a = open("a");
  is_host = true;
  Agent& b = open("b");
  EXPECT_TRUE(*a.opened);
  ASSERT_FALSE(*b.opened);
  EXPECT_EQ(b.opened->error().code, Errc::already_exists);
}

}  // namespace
}  // namespace lockstep::rendezvous
