// Agents of the `lockstep` backend, frozen or cut off for longer than the allowed silence.
#include <sys/socket.h>

#include "hub_backend_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;
using namespace testing;  // NOLINT
using Kind = Interruption::Kind;

TEST_F(HubBackendTest, AFrozenGuestIsTakenForGoneAndLearnsItWhenItWakes) {
  settings.min_nodes = 1;
  Agent& a = open("a");
  Agent& b = start("b", far_loop);
  until([&] { return b.opened.has_value(); });
  meet({&a, &b});
  frozen = &far_loop;
  until([&] { return !a.interruptions.empty(); });
  EXPECT_TRUE(a.interruptions[0].why.starts_with("b is gone: no sign of life for"));
  join(a);
  until([&] { return a.placed(); });
  EXPECT_EQ(a.round().group_world_size, 1);
  frozen = nullptr;
  until([&] { return !b.interruptions.empty(); });
  EXPECT_EQ(b.interruptions[0].kind, Kind::rejoin);
  EXPECT_TRUE(b.interruptions[0].why.starts_with("the other nodes took this node for gone"))
      << b.interruptions[0].why;
  join(b);
  until([&] { return !a.interruptions.empty(); });
  join(a);
  until([&] { return a.placed() && b.placed(); });
  EXPECT_EQ(b.round().group_rank, 1);
}

// The silence has two outcomes: the end of the exchange of reports, and an interruption. The
// callback of the first destroys the agent, so the second must not be delivered.
TEST_F(HubBackendTest, AnAgentThatGoesInACallbackHearsNothingMore) {
  Agent& a = start("a", far_loop);
  until([&] { return a.opened.has_value(); });
  Agent& b = open("b");
  meet({&a, &b});
  b.backend->exchange_reports({"b", 1, "own"}, 60s, [&b](auto all) {
    b.reports = std::move(all);
    b.backend.reset();
  });
  frozen = &far_loop;
  until([&] { return b.reports.has_value(); });
  EXPECT_EQ(b.backend, nullptr);
  EXPECT_TRUE(b.interruptions.empty());
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

// The guest's workers have ended well, and a silent host must not start them again.
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

// A connection to the hub that the test can cut without either end noticing.
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
  EXPECT_TRUE(a.interruptions[0].why.starts_with("b is gone: no sign of life for"));
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
