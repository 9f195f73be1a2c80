// The etcd3 backend with a fake etcd that refuses, lies, forgets and answers late. Tests with a
// real etcd: tests/integration/test_etcd3*.py.
#include "rendezvous/etcd3/etcd3_backend.h"

#include <gtest/gtest.h>

#include <deque>

#include "etcd3_fake.h"

namespace lockstep::rendezvous::etcd3 {
namespace {

using namespace std::chrono_literals;
using testing::FakeEtcd;
using Say = FakeEtcd::Say;
constexpr const char* kLeader = "/lockstep/rendezvous/job/leader";
constexpr const char* kFacts = "/lockstep/rendezvous/job/facts";

struct Agent {
  std::unique_ptr<Etcd3Backend> backend;
  std::optional<Result<void>> opened;
  std::optional<Result<std::optional<Round>>> joined;
  std::vector<Interruption> interruptions;

  bool placed() const { return joined && joined->has_value() && joined->value().has_value(); }
  const Round& round() const { return **joined.value(); }
  std::string open_error() const { return !opened || *opened ? "-" : opened->error().message; }
};

class Etcd3BackendTest : public ::testing::Test {
 protected:
  Etcd3BackendTest() : etcd(loop) {
    settings.access.endpoints = {{"127.0.0.1", etcd.port()}};
    settings.access.timeout = 600ms;
    settings.access.attempt_timeout = 200ms;
    hub::HubSettings& hub = settings.hub;
    hub.run_id = "job";
    hub.min_nodes = hub.max_nodes = 2;
    hub.connect_timeout = hub.join_timeout = 10s;
    hub.last_call_timeout = 50ms;
    hub.keep_alive_interval = 40ms;
    hub.local_addr = "127.0.0.1";
    hub.offer.max_restarts = 3;
  }
  ~Etcd3BackendTest() override { agents.clear(); }

  Agent& start(const std::string& name) {
    Agent& agent = agents.emplace_back();
    settings.hub.offer.host = name;
    settings.hub.offer_store = [](const std::string& addr) { return StorePlace{addr, 7000}; };
    agent.backend = std::make_unique<Etcd3Backend>(loop, settings);
    agent.backend->on_interruption(
        [&agent](const Interruption& what) { agent.interruptions.push_back(what); });
    agent.backend->open([&agent](Result<void> done) { agent.opened = std::move(done); });
    return agent;
  }
  Agent& open(const std::string& name) {
    Agent& agent = start(name);
    until([&] { return agent.opened.has_value(); });
    EXPECT_EQ(agent.open_error(), "-");
    return agent;
  }
  Agent& refused(const std::string& name) {
    Agent& agent = start(name);
    until([&] { return agent.opened.has_value(); });
    return agent;
  }
  static void join(Agent& agent) {
    agent.joined.reset();
    agent.backend->join([&agent](auto result) { agent.joined = std::move(result); });
  }
  void until(const std::function<bool()>& fact) {
    const auto limit = io::Clock::now() + 5s;
    while (!fact() && io::Clock::now() < limit)
      loop.run_once();
    ASSERT_TRUE(fact());
  }
  void pass(io::Duration time) {
    const auto limit = io::Clock::now() + time;
    while (io::Clock::now() < limit)
      loop.run_once();
  }
  // Both agents get a round with the same number.
  void expect_a_round(Agent& a, Agent& b) {
    until([&] { return a.placed() && b.placed(); });
    EXPECT_EQ(a.round().number, b.round().number);
    EXPECT_NE(a.round().group_rank, b.round().group_rank);
  }

  void meet(Agent& a, Agent& b) {
    join(a);
    join(b);
    expect_a_round(a, b);
  }

  // Makes etcd answer all transactions with `said` from now on, and counts them.
  void fail_transactions(const Say& said) {
    etcd.set_fault([this, said](const std::string& path, const auto&) -> std::optional<Say> {
      if (path != "/v3/kv/txn") return {};
      ++transactions;
      return said;
    });
  }
  void finish(Agent& agent) {
    agent.backend->finish([this](const Result<void>& outcome) { told += outcome ? 1 : 100; });
  }

  int transactions = 0;  // that have failed
  int told = 0;          // nodes that know of the good end
  io::Loop loop;
  FakeEtcd etcd;
  Etcd3Settings settings;
  std::deque<Agent> agents;
};

TEST_F(Etcd3BackendTest, TwoMeet) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet(a, b);
  EXPECT_NE(etcd.value(kFacts).find(R"("round":0)"), std::string::npos) << etcd.value(kFacts);
}

TEST_F(Etcd3BackendTest, ALeaseThatIsRefusedOrNone) {
  const struct {
    Say said;
    const char* words;
  } rows[] = {
      {FakeEtcd::reply(429, R"({"code":8,"message":"too many requests"})"), "too many requests"},
      {FakeEtcd::reply(200, R"({"ID":"0","TTL":"0"})"), "a lease without an id or a duration"},
      {FakeEtcd::reply(200, "{\"ID\":"), "etcd at"},
      {FakeEtcd::reply(200, "<html>"), "etcd at"},
      {FakeEtcd::silence(), "no answer within 200 ms"},
  };
  for (const auto& row : rows) {
    etcd.set_fault([&](const std::string& path, const auto&) -> std::optional<Say> {
      if (path == "/v3/lease/grant") return row.said;
      return {};
    });
    EXPECT_NE(refused("a").open_error().find(row.words), std::string::npos)
        << agents.back().open_error();
  }
}

// The key belongs to a leader that hangs, or to a stranger.
TEST_F(Etcd3BackendTest, ALeaderWithoutAPlaceIsNotWaitedForForEver) {
  etcd.put(kLeader, "");
  settings.hub.join_timeout = 1s;
  Agent& a = refused("a");
  EXPECT_NE(a.open_error().find("no node has published a hub within 1 s"), std::string::npos)
      << a.open_error();
  EXPECT_NE(a.opened->error().hint.find(kLeader), std::string::npos);
}

TEST_F(Etcd3BackendTest, NonsenseInAnswersAndFactsIsNamed) {
  etcd.put(kFacts, "{\"round\":\"many\"}");
  EXPECT_NE(refused("a").open_error().find("make no sense: {\"round\":\"many\"}"),
            std::string::npos)
      << agents.back().open_error();
  for (const char* said : {"", "[]", R"({"succeeded":true})", R"({"responses":[1]})"}) {
    etcd.set_fault([&](const std::string& path, const auto&) -> std::optional<Say> {
      if (path == "/v3/kv/txn") return FakeEtcd::reply(200, said);
      return {};
    });
    EXPECT_NE(refused("a").open_error(), "-") << said;
  }
}

// The watch hung and its events are compacted: a look at the key shows that no node leads.
TEST_F(Etcd3BackendTest, AWatchThatLostItsPastLooksAgain) {
  settings.hub.min_nodes = 1;
  Agent& a = open("a");
  Agent& b = open("b");
  const std::string before = etcd.value(kLeader);
  etcd.mute_watches(true);
  a.backend.reset();
  etcd.expire(kLeader);
  pass(100ms);
  EXPECT_EQ(etcd.value(kLeader), "");
  etcd.mute_watches(false);
  etcd.watches_say(R"({"result":{"canceled":true,"compact_revision":"900"}})");
  until([&] { return !etcd.value(kLeader).empty() && etcd.value(kLeader) != before; });
  join(b);
  until([&] { return b.placed(); });
}

TEST_F(Etcd3BackendTest, NonsenseFromAWatchIsNoEnd) {
  settings.hub.min_nodes = 1;
  Agent& a = open("a");
  Agent& b = open("b");
  for (const char* line : {"<html>", R"({"result":{"events":[1]}})", R"({"error":{"code":14}})"}) {
    etcd.watches_say(line);
    pass(60ms);
  }
  a.backend.reset();
  etcd.expire(kLeader);
  join(b);
  until([&] { return b.placed(); });
}

// The leader asks to place a round, and the answer comes after the loss of the lead.
TEST_F(Etcd3BackendTest, APermissionAfterTheLeaseIsForNothing) {
  Agent& a = open("a");
  Agent& b = open("b");
  bool asked = false;
  etcd.set_fault([&](const std::string& path, const FakeEtcd::Json& body) -> std::optional<Say> {
    const bool places =
        path == "/v3/kv/txn" && body.dump().find("\"request_range\"") == std::string::npos;
    if (!places || etcd.value(kLeader).empty()) return {};
    asked = true;
    return FakeEtcd::silence();
  });
  join(a);
  join(b);
  until([&] { return asked; });
  etcd.expire(kLeader);
  etcd.set_fault(nullptr);
  etcd.say(FakeEtcd::reply(200, R"({"succeeded":true,"responses":[{"response_put":{}}]})"),
           "POST /v3/kv/txn");
  expect_a_round(a, b);
  EXPECT_TRUE(a.interruptions.empty());
  EXPECT_TRUE(b.interruptions.empty());
}

// The leader's key is gone, and the leader does not know yet. The job may go on under another
// leader, so the end is told only after etcd has written it for the leader.
TEST_F(Etcd3BackendTest, ALeaderWithoutItsKeyEndsNothing) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet(a, b);
  etcd.mute_watches(true);
  etcd.expire(kLeader);
  bool asked = false;
  etcd.set_fault([&](const std::string&, const FakeEtcd::Json& body) -> std::optional<Say> {
    asked = asked || body.dump().find("request_put") != std::string::npos;
    return {};
  });
  finish(a);
  finish(b);
  until([&] { return asked; });
  pass(200ms);
  EXPECT_EQ(told, 0);
  // A look at the key makes the node the leader again, and both are still there.
  etcd.mute_watches(false);
  etcd.watches_say(R"({"result":{"canceled":true,"compact_revision":"900"}})");
  until([&] { return told == 2; });
  EXPECT_NE(etcd.value(kFacts).find(R"("good":true)"), std::string::npos) << etcd.value(kFacts);
}

// The leader's key is gone. etcd tells the leader so, and then falls silent.
TEST_F(Etcd3BackendTest, ADeposedLeaderEndsNothingWhenEtcdFallsSilent) {
  etcd.lease_ttl = 2;
  Agent& a = open("a");
  Agent& b = open("b");
  meet(a, b);
  etcd.mute_watches(true);
  etcd.expire(kLeader);
  bool asked = false;
  etcd.set_fault([&](const std::string& path, const auto&) -> std::optional<Say> {
    if (asked) return FakeEtcd::silence();
    asked = path == "/v3/kv/txn";
    return {};
  });
  finish(a);
  finish(b);
  until([&] { return asked; });
  // Longer than two thirds of the lease: the node is unsure by then.
  pass(1500ms);
  EXPECT_EQ(told, 0);
}

// The leader's node finishes first, which is recorded, too.
TEST_F(Etcd3BackendTest, AnEndForWhichEtcdHasNoRoomIsToldAllTheSame) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet(a, b);
  fail_transactions(
      FakeEtcd::reply(429, R"({"code":8,"message":"etcdserver: mvcc: database space exceeded"})"));
  finish(a);
  until([&] { return transactions > 0; });
  pass(100ms);
  finish(b);
  until([&] { return told == 2; });
  EXPECT_TRUE(b.interruptions.empty());
}

const Say kTimedOut =
    FakeEtcd::reply(400, R"({"code":14,"message":"etcdserver: request timed out"})");

// etcd renews the lease and writes nothing.
TEST_F(Etcd3BackendTest, AnEndThatEtcdDoesNotWriteInTimeIsToldAllTheSame) {
  Agent& a = open("a");
  Agent& b = open("b");
  meet(a, b);
  fail_transactions(kTimedOut);
  finish(a);
  finish(b);
  until([&] { return told == 2; });
}

TEST_F(Etcd3BackendTest, ALeaderThatLeavesTellsTheEnd) {
  settings.hub.keep_alive_interval = 10s;
  Agent& a = open("a");
  Agent& b = open("b");
  meet(a, b);
  finish(a);
  // The leader's own node has been recorded.
  until([&] { return etcd.value(kFacts).find(R"("finished":[0])") != std::string::npos; });
  fail_transactions(kTimedOut);
  finish(b);
  until([&] { return transactions > 0; });
  a.backend->leave(Departure::succeeded, [](const Result<void>&) {});
  until([&] { return told == 1; });
}

// The retry of an earlier record comes between the record of a round and its retry.
TEST_F(Etcd3BackendTest, ARoundIsNotForgottenForAnEarlierRecord) {
  settings.access.timeout = settings.access.attempt_timeout = 10s;
  Agent& a = open("a");
  Agent& b = open("b");
  meet(a, b);
  fail_transactions(FakeEtcd::silence());
  const auto refuse = [&] { etcd.say(kTimedOut, "POST /v3/kv/txn"); };
  b.backend->tell_failure("it failed", false);
  until([&] { return transactions == 1 && !a.interruptions.empty(); });
  refuse();
  join(a);
  join(b);
  until([&] { return transactions == 2; });
  // The restart is written again behind the round.
  pass(300ms);
  refuse();
  until([&] { return transactions == 3; });
  refuse();
  etcd.set_fault(nullptr);
  expect_a_round(a, b);
}

// The leader wins again after the loss of its key. It comes over last, and no node is lost.
TEST_F(Etcd3BackendTest, ALeaderThatLeadsAgainIsNotLost) {
  settings.hub.keep_alive_interval = 200ms;
  Agent& a = open("a");
  Agent& b = open("b");
  meet(a, b);
  // a has the first lease. Nobody else may win, and only b hears of the new hub.
  etcd.set_fault([&](const std::string& path, const FakeEtcd::Json& body) -> std::optional<Say> {
    if (path != "/v3/kv/txn") return {};
    const std::string text = body.dump();
    const bool campaigns = text.find("\"request_range\"") != std::string::npos;
    if (!campaigns) {
      etcd.mute_watches(true);
    } else if (etcd.value(kLeader).empty() && text.find(R"("lease":"1")") == std::string::npos) {
      return kTimedOut;
    }
    return {};
  });
  etcd.expire(kLeader);
  until([&] { return a.backend->staying_for().find(": b is still there") != std::string::npos; });
  EXPECT_TRUE(b.interruptions.empty());
  etcd.mute_watches(false);
  etcd.watches_say(R"({"result":{"canceled":true,"compact_revision":"900"}})");
  finish(a);
  finish(b);
  until([&] { return told == 2; });
  EXPECT_TRUE(a.interruptions.empty());
  EXPECT_TRUE(b.interruptions.empty());
}

// The leader's join timeout is its own: the other nodes get another leader, and are not spares.
TEST_F(Etcd3BackendTest, ALeaderOutOfPatienceLeavesTheOthersToWait) {
  settings.hub.min_nodes = settings.hub.max_nodes = 3;
  settings.hub.join_timeout = 1500ms;
  Agent& a = open("a");
  settings.hub.join_timeout = 10s;
  Agent& b = open("b");
  join(a);
  join(b);
  until([&] { return a.joined.has_value(); });
  EXPECT_FALSE(*a.joined);
  bool left = false;
  a.backend->leave(Departure::failed, [&](const Result<void>&) { left = true; });
  until([&] { return left; });
  Agent& c = open("c");
  Agent& d = open("d");
  join(c);
  join(d);
  expect_a_round(b, c);
  EXPECT_EQ(b.round().group_world_size, 3);
}

// etcd has forgotten the lease: the former leader becomes a candidate again.
TEST_F(Etcd3BackendTest, ALeaseThatEtcdHasForgotten) {
  etcd.lease_ttl = 1;
  Agent& a = open("a");
  const std::string before = etcd.value(kLeader);
  etcd.mute_watches(true);
  etcd.expire(kLeader);
  until([&] { return !etcd.value(kLeader).empty() && etcd.value(kLeader) != before; });
  etcd.mute_watches(false);
  Agent& b = open("b");
  meet(a, b);
}

// The job was recorded as over while no node led.
TEST_F(Etcd3BackendTest, AnEndThatTheLeaderDidNotTell) {
  for (const bool good : {true, false}) {
    settings.hub.min_nodes = 1;
    settings.hub.run_id = good ? "good" : "bad";
    const std::string folder = "/lockstep/rendezvous/" + settings.hub.run_id;
    Agent& a = open("a");
    Agent& b = open("b");
    meet(a, b);
    std::optional<Result<void>> finished;
    b.backend->finish([&](Result<void> outcome) { finished = std::move(outcome); });
    etcd.put(folder + "/facts", R"({"round":0,"restarts":0,"closed":true,"why":"so","good":)" +
                                    std::string(good ? "true}" : "false}"));
    a.backend.reset();
    etcd.expire(folder + "/leader");
    until([&] { return finished || !b.interruptions.empty(); });
    EXPECT_EQ(finished && finished->has_value(), good);
    const bool bad_end = b.interruptions.size() == 1 &&
                         b.interruptions[0].kind == Interruption::Kind::end &&
                         b.interruptions[0].why == "so";
    EXPECT_NE(bad_end, good);
    agents.clear();
  }
}

}  // namespace
}  // namespace lockstep::rendezvous::etcd3
