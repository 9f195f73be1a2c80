// Several agents of the c10d backend on one loop, over real sockets, with short periods.
#include "rendezvous/c10d.h"

#include "io/listen.h"

#include <gtest/gtest.h>

#include <deque>

namespace lockstep::rendezvous {
namespace {
using namespace std::chrono_literals;

struct Agent {
  std::unique_ptr<C10d> rdzv;
  std::optional<Result<void>> opened;
  std::optional<Result<std::optional<RoundResult>>> joined;
  std::optional<Result<void>> closed;
  std::optional<Watched> watched;
  std::optional<Error> lost;
};

class C10dTest : public ::testing::Test {
 protected:
  C10dTest() : port(io::open_listener("127.0.0.1", 0, 1).value().port) {
    settings.dynamic.min_nodes = 2;
    settings.dynamic.max_nodes = 2;
    settings.dynamic.poll_interval = 5ms;
    settings.dynamic.keep_alive_interval = 40ms;
    settings.dynamic.last_call_timeout = 60ms;
    settings.read_timeout = 5000ms;
  }
  Agent& open(const std::string& name) {
    Agent& agent = agents.emplace_back();
    settings.endpoint = {"127.0.0.1", port};
    settings.run_id = "job";
    settings.local_addr = name;
    agent.rdzv = std::make_unique<C10d>(loop, settings);
    agent.rdzv->on_watched([&](const Watched& watched) { agent.watched = watched; });
    agent.rdzv->on_lost([&](const Error& error) { agent.lost = error; });
    agent.rdzv->open([&](Result<void> done) { agent.opened = std::move(done); });
    until([&] { return agent.opened.has_value(); });
    return agent;
  }
  void join(Agent& agent) {
    agent.joined.reset();
    agent.rdzv->join([&](auto result) { agent.joined = std::move(result); });
  }
  static const RoundResult& round(const Agent& agent) { return **agent.joined.value(); }
  template <class Fact>
  void until(Fact fact) {
    const auto limit = io::Clock::now() + 20s;
    while (!fact() && io::Clock::now() < limit)
      loop.run_once();
    ASSERT_TRUE(fact());
  }

  io::Loop loop;
  int port;
  C10dSettings settings;
  std::deque<Agent> agents;
};

TEST_F(C10dTest, TwoMeetAThirdWaitsAndTheNextRoundHasTheRest) {
  settings.dynamic.max_nodes = 3;
  Agent& b = open("b");
  Agent& a = open("a");
  ASSERT_TRUE(*b.opened) << b.opened->error().message;
  ASSERT_TRUE(*a.opened) << a.opened->error().message;
  EXPECT_TRUE(b.rdzv->hosts());
  EXPECT_FALSE(a.rdzv->hosts());
  join(b);
  join(a);
  until([&] { return a.joined && b.joined; });
  EXPECT_EQ(round(a).rank, 0U);
  EXPECT_EQ(round(b).rank, 1U);
  EXPECT_EQ(round(b).world, 2U);
  EXPECT_EQ(round(b).prefix, "/torch.rendezvous.job.0/");
  Agent& c = open("c");
  join(c);
  until(
      [&] { return a.watched && a.watched->waiting == 1 && b.watched && b.watched->waiting == 1; });
  join(a);
  join(b);
  until([&] { return a.joined && b.joined && c.joined; });
  EXPECT_EQ(round(c).round, 1);
  EXPECT_EQ(round(c).rank, 2U);
  EXPECT_EQ(round(a).nodes, round(c).nodes);
}

TEST_F(C10dTest, HeartbeatsGoOnAndAStoppedOneIsMissed) {
  Agent& a = open("a");
  Agent& b = open("b");
  join(a);
  join(b);
  until([&] { return a.joined && b.joined; });
  const auto start = io::Clock::now();
  until([&] { return io::Clock::now() > start + 400ms; });
  EXPECT_EQ(a.watched->participants, 2U);
  EXPECT_TRUE(b.watched->takes_part);
  b.rdzv.reset();
  until([&] { return a.watched->participants == 1; });
}

TEST_F(C10dTest, JoinTimesOutAndLeavesNoTrace) {
  settings.dynamic.join_timeout = 50ms;
  Agent& a = open("a");
  join(a);
  until([&] { return a.joined.has_value(); });
  EXPECT_EQ(a.joined->error().code, Errc::timeout);
  EXPECT_EQ(a.joined->error().message,
            "joining timed out: 1 of at least 2 nodes had joined the rendezvous 'job'");
  EXPECT_TRUE(a.rdzv->last_state().participants.empty());
}

TEST_F(C10dTest, ClosedIsFinalAndSparesEndWell) {
  settings.dynamic.min_nodes = 1;
  settings.dynamic.max_nodes = 1;
  Agent& a = open("a");
  join(a);
  until([&] { return a.joined.has_value(); });
  Agent& spare = open("spare");
  join(spare);
  until([&] { return spare.rdzv->last_state().redundancy_list.size() == 1; });
  a.rdzv->close([&](Result<void> done) { a.closed = std::move(done); });
  until([&] { return a.closed && spare.joined; });
  EXPECT_TRUE(*a.closed);
  EXPECT_FALSE(spare.joined->value());
  Agent& late = open("late");
  join(late);
  until([&] { return late.joined.has_value(); });
  EXPECT_EQ(late.joined->error().code, Errc::canceled);
}

TEST_F(C10dTest, ALostStoreEndsEverything) {
  Agent& host = open("a");
  Agent& guest = open("b");
  join(guest);
  until([&] { return guest.rdzv->last_state().participants.size() == 1; });
  host.rdzv.reset();
  until([&] { return guest.joined && guest.lost; });
  EXPECT_EQ(guest.joined->error().code, Errc::unavailable);
  guest.rdzv->close([&](Result<void> done) { guest.closed = std::move(done); });
  until([&] { return guest.closed.has_value(); });
  EXPECT_FALSE(*guest.closed);
}

TEST_F(C10dTest, ACorruptStateIsNeverOverwritten) {
  Agent& a = open("a");
  a.rdzv->server()->set("/torch.rendezvous.job", "bm9uc2Vuc2U=");
  join(a);
  until([&] { return a.joined.has_value(); });
  EXPECT_EQ(a.joined->error().code, Errc::corrupt);
  EXPECT_EQ(a.rdzv->server()->engine().get("/torch.rendezvous.job"), "bm9uc2Vuc2U=");
}

TEST_F(C10dTest, NobodyHosts) {
  settings.is_host = false;
  settings.read_timeout = 100ms;
  Agent& a = open("a");
  ASSERT_FALSE(*a.opened);
  EXPECT_NE(a.opened->error().message.find("Connection refused"), std::string::npos);
}

TEST_F(C10dTest, ATakenPortIsFinalForADeclaredHost) {
  Agent& a = open("a");
  settings.is_host = true;
  Agent& b = open("b");
  EXPECT_TRUE(*a.opened);
  ASSERT_FALSE(*b.opened);
  EXPECT_EQ(b.opened->error().code, Errc::already_exists);
}

}  // namespace
}  // namespace lockstep::rendezvous
