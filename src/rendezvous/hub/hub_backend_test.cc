// Several agents of the `lockstep` backend on one loop, over real sockets, with short periods.
#include "rendezvous/hub/hub_backend.h"

#include "io/listen.h"

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <deque>

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;
using Kind = Interruption::Kind;

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
    settings.local_addr = "addr-" + name;
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
    EXPECT_FALSE(agent.joined);  // never inside the call
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
  io::Loop far_loop;  // as another process: either can be frozen
  const io::Loop* frozen = nullptr;
  int port;
  HubSettings settings;
  std::deque<Agent> agents;
};

TEST_F(HubBackendTest, TwoMeetInFourMessagesAndEndTogether) {
  Agent& a = open("a");
  Agent& b = open("b");
  EXPECT_TRUE(a.backend->hosts());
  EXPECT_FALSE(b.backend->hosts());
  EXPECT_EQ(b.backend->address(), "addr-b");
  meet({&a, &b});
  EXPECT_EQ(a.round().group_rank, 0);
  EXPECT_EQ(b.round().group_rank, 1);
  EXPECT_EQ(b.round().master_addr, "addr-a");
  EXPECT_EQ(b.round().master_port, 7000);
  EXPECT_EQ(b.backend->member().messages(), 4U);
  finish(a);
  pass(400ms);  // longer than a silence may be: heartbeats go on in the barrier
  EXPECT_FALSE(a.finished);
  EXPECT_TRUE(a.interruptions.empty());
  finish(b);
  until([&] { return a.finished && b.finished; });
  EXPECT_TRUE(*a.finished);
  leave(a, Departure::succeeded);
  pass(100ms);
  EXPECT_FALSE(a.left);  // the host waits for its guest
  leave(b, Departure::succeeded);
  until([&] { return a.left && b.left; });
}

TEST_F(HubBackendTest, AFailureIsToldAndTheNextRoundCountsIt) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  b.backend->tell_failure("rank 1 on b failed (exitcode: 9)", false);
  until([&] { return !a.interruptions.empty(); });
  EXPECT_EQ(a.interruptions[0].kind, Kind::rejoin);
  EXPECT_EQ(a.interruptions[0].why, "rank 1 on b failed (exitcode: 9)");
  EXPECT_TRUE(b.interruptions.empty());
  meet({&b, &a});
  EXPECT_EQ(b.round().number, 1);
  EXPECT_EQ(b.round().restarts, 1);
  EXPECT_EQ(b.round().group_rank, 1);
}

TEST_F(HubBackendTest, AFinalFailureEndsAndReportsAreExchanged) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  b.backend->tell_failure("rank 1 on b failed", true);
  until([&] { return !a.interruptions.empty(); });
  EXPECT_EQ(a.interruptions[0].kind, Kind::end);
  for (Agent* agent : {&a, &b}) {
    const std::string name = agent == &a ? "a" : "b";
    agent->backend->exchange_reports({name, agent->round().group_rank, "report of " + name}, 5s,
                                     [agent](auto reports) { agent->reports = reports; });
  }
  until([&] { return a.reports && b.reports; });
  for (const Agent* agent : {&a, &b}) {
    ASSERT_EQ(agent->reports->size(), 2U);
    EXPECT_EQ(agent->reports->front().text, "report of b");
  }
  leave(a, Departure::failed);
  leave(b, Departure::failed);
  until([&] { return a.left && b.left; });
}

TEST_F(HubBackendTest, ALostGuestIsReplacedByTheSpareWhichIsToldWhenItIsNotNeeded) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  Agent& spare = open("spare");
  join(spare);
  until([&] {
    return spare.backend->waiting_for().find("this one is a spare") != std::string::npos;
  });
  b.backend.reset();
  until([&] { return !a.interruptions.empty(); });
  EXPECT_EQ(a.interruptions[0].why, "b is gone: the connection was closed");
  join(a);
  until([&] { return a.placed() && spare.placed(); });
  EXPECT_EQ(spare.round().group_rank, 1);
  EXPECT_EQ(spare.round().restarts, 0);
  Agent& second = open("second");
  join(second);
  finish(a);
  finish(spare);
  until([&] { return second.joined.has_value(); });
  EXPECT_FALSE(second.joined->value());
}

TEST_F(HubBackendTest, AHostThatIsGoneEndsItForTheGuest) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  a.backend.reset();
  until([&] { return !b.interruptions.empty(); });
  EXPECT_EQ(b.interruptions[0].kind, Kind::end);
  EXPECT_TRUE(b.interruptions[0].why.starts_with("the host of the rendezvous at 127.0.0.1:"))
      << b.interruptions[0].why;
  EXPECT_NE(b.interruptions[0].why.find("Connection refused"), std::string::npos);
  join(b);
  until([&] { return b.joined.has_value(); });
  EXPECT_FALSE(*b.joined);
  leave(b, Departure::failed);
  until([&] { return b.left.has_value(); });
}

TEST_F(HubBackendTest, AHostThatIsGoneInTheBarrierIsAnErrorAndNoInterruption) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  finish(b);
  pass(20ms);
  a.backend.reset();
  until([&] { return b.finished.has_value(); });
  EXPECT_FALSE(*b.finished);
  EXPECT_TRUE(b.interruptions.empty());
}

TEST_F(HubBackendTest, AStoppedHostTellsItsGuests) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  leave(a, Departure::stopped);
  until([&] { return !b.interruptions.empty(); });
  EXPECT_EQ(b.interruptions[0].kind, Kind::end);
  EXPECT_EQ(b.interruptions[0].why, "a, the host of the rendezvous, was stopped");
  EXPECT_FALSE(a.left);
  leave(b, Departure::failed);
  until([&] { return a.left && b.left; });
}

TEST_F(HubBackendTest, TokensMustBeTheSame) {
  settings.token = "secret";
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  settings.token = "other";
  Agent& c = start("c");
  settings.token = std::nullopt;
  Agent& d = start("d");
  until([&] { return c.opened && d.opened; });
  ASSERT_FALSE(*c.opened);
  EXPECT_EQ(c.opened->error().code, Errc::denied);
  EXPECT_NE(
      c.opened->error().message.find("the job token of c is not the one of the rendezvous 'job'"),
      std::string::npos);
  ASSERT_FALSE(*d.opened);
  EXPECT_NE(
      d.opened->error().message.find("the rendezvous 'job' wants a job token, and d has none"),
      std::string::npos);
  EXPECT_TRUE(a.interruptions.empty());
}

TEST_F(HubBackendTest, AHostWithoutATokenRefusesOneWithOne) {
  open("a");
  settings.token = "secret";
  Agent& b = start("b");
  until([&] { return b.opened.has_value(); });
  ASSERT_FALSE(*b.opened);
  EXPECT_NE(b.opened->error().message.find("b has a job token, and the host"), std::string::npos);
}

TEST_F(HubBackendTest, AClosedRendezvousSaysSo) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet({&a, &b});
  finish(a);
  finish(b);
  until([&] { return a.finished && b.finished; });
  Agent& late = open("late");
  join(late);
  until([&] { return late.joined.has_value(); });
  ASSERT_FALSE(*late.joined);
  EXPECT_EQ(late.joined->error().code, Errc::canceled);
  EXPECT_TRUE(late.joined->error().message.starts_with("the rendezvous 'job' is closed"));
}

TEST_F(HubBackendTest, ThePortOfAJobThatIsEndingIsTakenOver) {
  Agent& old = open("old");
  settings.run_id = "next";
  Agent& a = start("a");
  until([&] {
    return a.backend->waiting_for().find("'next', but this is another one") != std::string::npos;
  });
  old.backend.reset();
  until([&] { return a.opened.has_value(); });
  EXPECT_TRUE(*a.opened);
  EXPECT_TRUE(a.backend->hosts());
}

TEST_F(HubBackendTest, ADeclaredGuestWaitsForTheHostAndSaysWhatItTried) {
  settings.is_host = false;
  Agent& b = start("b");
  until([&] { return b.backend->waiting_for().find("Connection refused") != std::string::npos; });
  settings.is_host = std::nullopt;
  Agent& a = open("a");
  until([&] { return b.opened.has_value(); });
  EXPECT_TRUE(*b.opened);
  meet({&a, &b});
  EXPECT_EQ(b.round().group_rank, 1);
}

TEST_F(HubBackendTest, NobodyHosts) {
  settings.is_host = false;
  settings.connect_timeout = 100ms;
  Agent& b = start("b");
  until([&] { return b.opened.has_value(); });
  ASSERT_FALSE(*b.opened);
  EXPECT_NE(b.opened->error().message.find("Connection refused"), std::string::npos);
}

// Connecting and joining have one bound, and each has its part of it.
TEST_F(HubBackendTest, WaitingForTheHostCountsAsJoining) {
  settings.is_host = false;
  settings.connect_timeout = 60s;
  settings.join_timeout = 1s;
  Agent& nobody = start("nobody");
  until([&] { return nobody.opened.has_value(); });
  EXPECT_FALSE(*nobody.opened);
  Agent& b = start("b");
  pass(600ms);
  settings.join_timeout = 60s;
  settings.is_host = true;
  open("a");
  until([&] { return b.opened.has_value(); });
  join(b);
  until([&] { return b.joined.has_value(); });
  ASSERT_FALSE(*b.joined);
  EXPECT_NE(b.joined->error().message.find("timed out after 0 s"), std::string::npos)
      << b.joined->error().message;
}

TEST_F(HubBackendTest, AFrozenGuestIsTakenForGoneAndLearnsItWhenItWakes) {
  settings.min_nodes = 1;
  Agent& a = open("a");
  Agent& b = start("b", far_loop);
  until([&] { return b.opened.has_value(); });
  meet({&a, &b});
  frozen = &far_loop;
  until([&] { return !a.interruptions.empty(); });
  EXPECT_TRUE(a.interruptions[0].why.starts_with("b is gone: nothing was heard of it for"));
  join(a);
  until([&] { return a.placed(); });
  EXPECT_EQ(a.round().group_world_size, 1);
  frozen = nullptr;
  until([&] { return !b.interruptions.empty(); });
  EXPECT_EQ(b.interruptions[0].kind, Kind::rejoin);
  EXPECT_TRUE(b.interruptions[0].why.starts_with("the others took this node for gone"))
      << b.interruptions[0].why;
  join(b);
  until([&] { return !a.interruptions.empty(); });
  join(a);
  until([&] { return a.placed() && b.placed(); });
  EXPECT_EQ(b.round().group_rank, 1);
}

TEST_F(HubBackendTest, AFrozenHostFindsItsGuestsAgainWhenItWakes) {
  Agent& a = open("a");
  Agent& b = start("b", far_loop);
  until([&] { return b.opened.has_value(); });
  meet({&a, &b});
  frozen = &loop;
  until([&] { return !b.interruptions.empty(); });
  EXPECT_EQ(b.interruptions[0].kind, Kind::rejoin);
  EXPECT_TRUE(b.interruptions[0].why.starts_with("lost the connection to the rendezvous"));
  join(b);
  pass(500ms);
  EXPECT_FALSE(b.joined);
  frozen = nullptr;
  until([&] { return !a.interruptions.empty(); });
  EXPECT_EQ(a.interruptions[0].kind, Kind::rejoin);
  EXPECT_EQ(a.interruptions[0].why, "b has lost its connection to the rendezvous");
  join(a);
  until([&] { return a.placed() && b.placed(); });
  EXPECT_EQ(b.round().group_rank, 1);
  EXPECT_EQ(b.round().restarts, 0);
}

// Its workers have ended well, and no silence of the host's starts them again.
TEST_F(HubBackendTest, AFrozenHostFindsTheFinishedGuestAgain) {
  Agent& a = open("a");
  Agent& b = start("b", far_loop);
  until([&] { return b.opened.has_value(); });
  meet({&a, &b});
  finish(b);
  frozen = &loop;
  until([&] { return b.backend->waiting_for().starts_with("no connection"); });
  frozen = nullptr;
  finish(a);
  until([&] { return a.finished && b.finished; });
  EXPECT_TRUE(*a.finished);
  EXPECT_TRUE(*b.finished);
  EXPECT_TRUE(a.interruptions.empty());
  EXPECT_TRUE(b.interruptions.empty());
}

// A way to the hub that can be cut without either end noticing.
class Cable {
 public:
  Cable(io::Loop& loop, int to)
      : loop_(loop),
        to_(to),
        listener_(io::open_listener("127.0.0.1", 0, 16).value()),
        accept_(loop, listener_.fd.get()) {
    accept_.start(io::kReadable, [this](int) { admit(); });
  }
  int port() const { return listener_.port; }
  void cut(bool off) {
    cut_ = off;
    for (auto& side : sides_)
      side.watch->want(off ? 0 : io::kReadable);
  }

 private:
  struct Side {
    io::Fd fd;
    std::unique_ptr<io::Watch> watch;
    int other = -1;
  };
  void admit() {
    io::Fd near(accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    io::Fd far(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto to = io::resolve_numeric("127.0.0.1", to_).value().addresses.front();
    if (!near || connect(far.get(), to.get(), to.size) != 0) return;
    const int ends[] = {near.get(), far.get()};
    sides_.push_back({std::move(near), nullptr, ends[1]});
    watch(sides_.back());
    sides_.push_back({std::move(far), nullptr, ends[0]});
    watch(sides_.back());
  }
  void watch(Side& side) {
    side.watch = std::make_unique<io::Watch>(loop_, side.fd.get());
    side.watch->start(cut_ ? 0 : io::kReadable, [&side](int) {
      char bytes[4096];
      const ssize_t got = recv(side.fd.get(), bytes, sizeof bytes, 0);
      if (got > 0) (void)!send(side.other, bytes, static_cast<std::size_t>(got), MSG_NOSIGNAL);
      if (got <= 0) {
        shutdown(side.other, SHUT_WR);
        side.watch->stop();
      }
    });
  }

  io::Loop& loop_;
  int to_;
  io::Listener listener_;
  io::Watch accept_;
  std::deque<Side> sides_;
  bool cut_ = false;
};

TEST_F(HubBackendTest, ACutLinkInterruptsBothSidesAndHeals) {
  settings.min_nodes = 1;
  settings.max_nodes = 2;
  settings.last_call_timeout = 5s;
  Agent& a = open("a");
  Cable cable(loop, port);
  const int real = std::exchange(port, cable.port());
  settings.is_host = false;
  Agent& b = open("b");
  port = real;
  meet({&a, &b});
  cable.cut(true);
  until([&] { return !a.interruptions.empty() && !b.interruptions.empty(); });
  EXPECT_EQ(a.interruptions[0].kind, Kind::rejoin);
  EXPECT_TRUE(a.interruptions[0].why.starts_with("b is gone: nothing was heard of it for"));
  EXPECT_EQ(b.interruptions[0].kind, Kind::rejoin);
  EXPECT_TRUE(b.interruptions[0].why.starts_with("lost the connection to the rendezvous at"));
  join(a);
  join(b);
  until([&] { return a.placed(); });
  EXPECT_EQ(a.round().group_world_size, 1);
  pass(300ms);
  EXPECT_FALSE(b.joined);
  EXPECT_NE(b.backend->waiting_for().find("no connection to the rendezvous 'job' at"),
            std::string::npos);
  cable.cut(false);
  until([&] { return !a.interruptions.empty(); });
  EXPECT_EQ(a.interruptions[0].why, "new nodes want to take part: b");
  join(a);
  until([&] { return a.placed() && b.placed(); });
  EXPECT_EQ(b.round().group_rank, 1);
  EXPECT_EQ(b.round().restarts, 0);
  agents.clear();
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
