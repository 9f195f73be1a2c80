#include "store/engine.h"

#include "store/store_testing.h"

#include <gtest/gtest.h>

#include <time.h>

#include <chrono>
#include <deque>
#include <memory>
#include <vector>

namespace lockstep::store {
namespace {
using testing::hex;
using testing::Peer;

std::string text(std::string_view value) {
  std::string out;
  put_string(out, value);
  return out;
}
std::string number(std::int64_t value) {
  std::string out;
  put_i64(out, value);
  return out;
}

// Peers of a chosen dialect, asked with Requests.
class EngineTest : public ::testing::TestWithParam<Dialect> {
 protected:
  Peer& peer() {
    Peer& made = peers_.emplace_back(engine);
    made.feed(GetParam() == Dialect::d ? greeting(Dialect::d, 1) : testing::unhex("06"));
    made.take();
    return made;
  }
  std::string ask(Peer& at, const Request& request) {
    at.feed(testing::bytes_of(GetParam(), request));
    return at.take();
  }
  Engine engine;

 private:
  std::deque<Peer> peers_;
};
INSTANTIATE_TEST_SUITE_P(Both, EngineTest, ::testing::Values(Dialect::a, Dialect::d),
                         [](const auto& param) { return param.param == Dialect::a ? "A" : "D"; });

class EngineD : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(New, EngineD, ::testing::Values(Dialect::d));
class EngineA : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Old, EngineA, ::testing::Values(Dialect::a));

TEST_P(EngineTest, SetGetDeleteCount) {
  Peer& p = peer();
  EXPECT_EQ(ask(p, {.op = Op::set, .key = "k", .value = {"a\0b", 3}}), "");
  EXPECT_EQ(ask(p, {.op = Op::get, .key = "k"}), text({"a\0b", 3}));
  EXPECT_EQ(ask(p, {.op = Op::set, .key = "k"}), "");
  EXPECT_EQ(ask(p, {.op = Op::get, .key = "k"}), text(""));
  EXPECT_EQ(ask(p, {.op = Op::num_keys}), number(1));
  EXPECT_EQ(ask(p, {.op = Op::delete_key, .key = "k"}), number(1));
  EXPECT_EQ(ask(p, {.op = Op::delete_key, .key = "k"}), number(0));
  EXPECT_EQ(ask(p, {.op = Op::num_keys}), number(0));
  EXPECT_EQ(engine.bytes(), 0U);
}

TEST_P(EngineTest, OnlyAddRefusesAllThatMakesOrTellsKeys) {
  Engine counters({.only_add = true});
  counters.set("k", "1");
  for (const Request& request :
       {Request{.op = Op::set, .key = "k"}, Request{.op = Op::get, .key = "k"},
        Request{.op = Op::add, .key = "new", .number = 1}, Request{.op = Op::num_keys},
        Request{.op = Op::delete_key, .key = "k"}}) {
    Session session;
    EXPECT_TRUE(counters.handle(session, {.op = Op::add, .key = "k", .number = 0}));
    EXPECT_EQ(session.out, number(1));
    EXPECT_FALSE(counters.handle(session, request)) << op_name(request.op);
    EXPECT_EQ(session.out, number(1));
  }
  EXPECT_EQ(counters.num_keys(), 1U);
}

TEST_P(EngineTest, CompareSet) {
  Peer& p = peer();
  const auto cas = [&](std::string_view expected, std::string_view desired) {
    return ask(p, {.op = Op::compare_set, .key = "k", .value = expected, .desired = desired});
  };
  EXPECT_EQ(cas("x", "new"), text("x"));  // missing, but a value was expected: an echo
  EXPECT_FALSE(engine.contains("k"));
  EXPECT_EQ(cas("", "new"), text("new"));
  EXPECT_EQ(cas("", "other"), text("new"));
  EXPECT_EQ(cas("old", "other"), text("new"));
  EXPECT_EQ(cas("new", "other"), text("other"));
  EXPECT_EQ(engine.get("k"), "other");
}

TEST_P(EngineTest, AddReadsNumbersAsTheOriginalDoes) {
  Peer& p = peer();
  const auto add = [&](std::string_view before, std::int64_t delta) {
    engine.set("n", before);
    return ask(p, {.op = Op::add, .key = "n", .number = delta});
  };
  EXPECT_EQ(ask(p, {.op = Op::add, .key = "n", .number = -2}), number(-2));
  EXPECT_EQ(engine.get("n"), "-2");
  EXPECT_EQ(add("12abc", 1), number(13));
  EXPECT_EQ(add(" +7", 0), number(7));
  EXPECT_EQ(add("-5 ", 1), number(-4));
  EXPECT_EQ(add("9223372036854775807", 1), number(INT64_MIN));
  for (const auto bad : {"abc", "", " ", "+-5", "-", "99999999999999999999"}) {
    Peer& q = peer();
    engine.set("n", bad);
    EXPECT_EQ(ask(q, {.op = Op::add, .key = "n", .number = 1}), "");
    EXPECT_FALSE(q.open()) << bad;
    EXPECT_EQ(engine.get("n"), bad);
  }
  EXPECT_TRUE(p.open());
}

TEST_P(EngineTest, CheckAndWaitForSeveralKeys) {
  Peer& p = peer();
  Peer& q = peer();
  const std::vector<std::string_view> keys = {"a", "b", "a"};
  EXPECT_EQ(ask(p, {.op = Op::check, .items = keys}), "\1");
  EXPECT_EQ(ask(p, {.op = Op::check}), std::string(1, '\0'));
  EXPECT_EQ(ask(p, {.op = Op::wait}), std::string(1, '\0'));
  EXPECT_EQ(ask(p, {.op = Op::wait, .items = keys}), "");
  ask(q, {.op = Op::set, .key = "a"});
  EXPECT_EQ(engine.next_touched(), nullptr);
  ask(q, {.op = Op::delete_key, .key = "a"});  // the key existed once, which counts
  EXPECT_EQ(ask(p, {.op = Op::num_keys}),
            number(0));  // a parked wait does not hold up later requests
  ask(q, {.op = Op::add, .key = "b", .number = 1});
  EXPECT_EQ(engine.next_touched(), &p.session());
  EXPECT_EQ(engine.next_touched(), nullptr);
  EXPECT_EQ(p.take(), std::string(1, '\0'));
  engine.set("a", "");
  EXPECT_EQ(ask(p, {.op = Op::check, .items = keys}), std::string(1, '\0'));
  EXPECT_EQ(ask(p, {.op = Op::wait, .items = keys}), std::string(1, '\0'));
}

TEST_P(EngineTest, EveryWriteWakes) {
  const std::vector<std::string_view> keys = {"k"};
  const std::vector<std::string_view> pairs = {"k", "v"};
  const std::vector<Request> writes = {{.op = Op::set, .key = "k"},
                                       {.op = Op::compare_set, .key = "k", .desired = "v"},
                                       {.op = Op::add, .key = "k", .number = 0},
                                       {.op = Op::append, .key = "k", .value = "v"},
                                       {.op = Op::multi_set, .items = pairs},
                                       {.op = Op::queue_push, .key = "k", .value = "v"},
                                       {.op = Op::barrier, .key = "k", .number = 1}};
  for (const Request& write : writes) {
    if (!opcode(GetParam(), write.op)) continue;
    Peer& waiter = peer();
    EXPECT_EQ(ask(waiter, {.op = Op::wait, .items = keys}), "");
    ask(peer(), write);
    EXPECT_EQ(engine.next_touched(), &waiter.session()) << op_name(write.op);
    EXPECT_EQ(waiter.take(), std::string(1, '\0'));
    engine.purge();
  }
  // A refused write must not wake the waiter.
  Peer& waiter = peer();
  ask(waiter, {.op = Op::wait, .items = keys});
  ask(peer(), {.op = Op::compare_set, .key = "k", .value = "x", .desired = "v"});
  EXPECT_EQ(engine.next_touched(), nullptr);
}

TEST_P(EngineTest, CancelWaitTakesBackAllWaits) {
  Peer& p = peer();
  const std::vector<std::string_view> keys = {"a", "b"};
  ask(p, {.op = Op::wait, .items = keys});
  ask(p, {.op = Op::wait, .items = {keys.data(), 1}});
  EXPECT_EQ(engine.parked(), 2U);
  EXPECT_EQ(ask(p, {.op = Op::cancel_wait}), "\1");
  EXPECT_EQ(engine.parked(), 0U);
  engine.set("a", "");
  engine.set("b", "");
  EXPECT_EQ(p.take(), "");
  EXPECT_EQ(ask(p, {.op = Op::cancel_wait}), "\1");
}

TEST_P(EngineTest, ADisconnectDropsWhatItLeft) {
  const std::vector<std::string_view> keys = {"a", "b"};
  Peer& stays = peer();
  ask(stays, {.op = Op::wait, .items = keys});
  {
    Peer goes(engine);
    goes.feed(GetParam() == Dialect::d ? greeting(Dialect::d, 1) : "");
    goes.feed(testing::bytes_of(GetParam(), {.op = Op::wait, .items = keys}));
    engine.set("a", "");
    goes.feed(testing::bytes_of(GetParam(), {.op = Op::wait, .items = {&keys[1], 1}}));
    EXPECT_EQ(engine.parked(), 3U);
  }
  EXPECT_EQ(engine.parked(), 1U);
  {
    Peer goes(engine);
    goes.feed(GetParam() == Dialect::d ? greeting(Dialect::d, 1) : "");
    goes.feed(testing::bytes_of(GetParam(), {.op = Op::wait, .items = keys}));
    engine.set("b", "");  // both are owed an answer now; one leaves before it is sent
  }
  EXPECT_EQ(engine.next_touched(), &stays.session());
  EXPECT_EQ(engine.next_touched(), nullptr);
}

TEST_P(EngineTest, TooManyParkedWaitsAreRefused) {
  Peer& p = peer();
  const std::vector<std::string_view> keys = {"a"};
  for (std::size_t i = 0; i < engine.limits().max_parked; ++i)
    ask(p, {.op = Op::wait, .items = keys});
  EXPECT_TRUE(p.open());
  ask(p, {.op = Op::wait, .items = keys});
  EXPECT_FALSE(p.open());
}

TEST_P(EngineTest, MultiSetMultiGet) {
  Peer& p = peer();
  const std::vector<std::string_view> pairs = {"a", "1", "b", ""};
  const std::vector<std::string_view> keys = {"b", "a", "a"};
  EXPECT_EQ(ask(p, {.op = Op::multi_set, .items = pairs}), "");
  EXPECT_EQ(ask(p, {.op = Op::multi_get, .items = keys}), text("") + text("1") + text("1"));
  EXPECT_EQ(ask(p, {.op = Op::multi_get}), "");
}

TEST_P(EngineD, MissingKeysReadAsEmpty) {
  Peer& p = peer();
  const std::vector<std::string_view> keys = {"x", "y"};
  EXPECT_EQ(ask(p, {.op = Op::get, .key = "x"}), text(""));
  EXPECT_EQ(ask(p, {.op = Op::multi_get, .items = keys}), text("") + text(""));
  EXPECT_TRUE(p.open());
}

TEST_P(EngineA, MissingKeysCloseTheConnection) {
  Peer& p = peer();
  EXPECT_EQ(ask(p, {.op = Op::get, .key = "x"}), "");
  EXPECT_FALSE(p.open());
  Peer& q = peer();
  const std::vector<std::string_view> keys = {"x"};
  EXPECT_EQ(ask(q, {.op = Op::multi_get, .items = keys}), "");
  EXPECT_FALSE(q.open());
}

TEST_P(EngineA, WatchersHearOfEveryChange) {
  Peer& p = peer();
  Peer& q = peer();
  const auto change = [](char kind, std::string_view before, std::string_view after) {
    return kind + text("k") + text(before) + text(after);
  };
  EXPECT_EQ(ask(p, {.op = Op::watch_key, .key = "k"}), "\3");
  ask(q, {.op = Op::set, .key = "k", .value = "1"});
  ask(q, {.op = Op::add, .key = "k", .number = 1});
  ask(q, {.op = Op::compare_set, .key = "k", .value = "2", .desired = "x"});
  ask(q, {.op = Op::compare_set, .key = "k", .value = "2", .desired = "y"});
  ask(q, {.op = Op::set, .key = "other", .value = "1"});
  ask(q, {.op = Op::delete_key, .key = "k"});
  EXPECT_EQ(engine.next_touched(), &p.session());
  EXPECT_EQ(hex(p.take()), hex(change('\1', "", "1") + change('\0', "1", "2") +
                               change('\0', "2", "x") + change('\2', "x", "")));
  engine.drop(p.session());
  ask(q, {.op = Op::set, .key = "k", .value = "1"});
  EXPECT_EQ(p.take(), "");
}

TEST_P(EngineA, WatchesAreBoundedAndCountOnce) {
  Peer& p = peer();
  Peer& q = peer();
  for (int i = 0; i < 10'000; ++i)
    ask(p, {.op = Op::watch_key, .key = "k"});
  const auto before = engine.effort();
  ask(q, {.op = Op::set, .key = "k", .value = "1"});
  EXPECT_LE(engine.effort() - before, 2U);
  EXPECT_EQ(hex(p.take()), hex('\1' + text("k") + text("") + text("1")));
  for (std::size_t i = 1; i < engine.limits().max_watched; ++i)
    ask(p, {.op = Op::watch_key, .key = std::to_string(i)});
  EXPECT_TRUE(p.open());
  ask(p, {.op = Op::watch_key, .key = "one more"});
  EXPECT_FALSE(p.open());
  engine.drop(p.session());
  ask(q, {.op = Op::watch_key, .key = "one more"});
  ask(q, {.op = Op::set, .key = "one more", .value = "1"});
  EXPECT_EQ(engine.next_touched(), &q.session());
  EXPECT_EQ(engine.next_touched(), nullptr);
}

TEST_P(EngineA, AWatcherThatDoesNotReadIsGivenUp) {
  Peer& p = peer();
  ask(p, {.op = Op::watch_key, .key = "k"});
  const std::string value(1U << 20, 'x');
  for (int i = 0; i < 100; ++i)
    engine.set("k", value);
  EXPECT_FALSE(p.open());
  EXPECT_TRUE(p.session().unread);
  EXPECT_LE(p.take().size(), engine.limits().max_notice_bytes + (3U << 20));
}

TEST_P(EngineTest, WaitedKeysAreBounded) {
  Peer& p = peer();
  std::vector<std::string_view> keys(engine.limits().max_keys, "k");
  for (std::size_t i = 0; i < engine.limits().max_waited_keys / keys.size(); ++i)
    ask(p, {.op = Op::wait, .items = keys});
  EXPECT_TRUE(p.open());
  ask(p, {.op = Op::cancel_wait});
  for (std::size_t i = 0; i < engine.limits().max_waited_keys / keys.size(); ++i)
    ask(p, {.op = Op::wait, .items = keys});
  EXPECT_TRUE(p.open());
  keys.resize(1);
  ask(p, {.op = Op::wait, .items = keys});
  EXPECT_FALSE(p.open());
}

// Each of these few requests once scanned everything the client held. Together they took minutes.
TEST_P(EngineD, NoRequestCostsWhatItsClientHolds) {
  Peer& p = peer();
  Peer& q = peer();
  const double before = testing::cpu_seconds();
  std::vector<std::string> keys;
  keys.reserve(60'000);
  for (int i = 0; i < 60'000; ++i)
    keys.push_back("a/quite/long/key/that/many/share/" + std::to_string(i));
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  ask(p, {.op = Op::wait, .items = views});
  for (std::size_t i = 0; i < keys.size(); ++i)
    ask(q, {.op = Op::queue_push, .key = keys[i]});
  EXPECT_EQ(hex(p.take()), "00");
  Peer old(engine);
  old.feed(testing::unhex("06") +
           testing::bytes_of(Dialect::a, {.op = Op::watch_key, .key = "other"}));
  engine.set("k", std::string(64U << 20, ' '));
  for (int i = 0; i < 3000; ++i)
    ask(q, {.op = Op::append, .key = "k", .value = "x"});
  for (int i = 0; i < 300; ++i)
    EXPECT_FALSE(engine.add("k", 1));
  EXPECT_LT(testing::cpu_seconds() - before, 10);
}

TEST_P(EngineD, AppendCreatesAndGrows) {
  Peer& p = peer();
  EXPECT_EQ(ask(p, {.op = Op::append, .key = "k", .value = "ab"}), "");
  EXPECT_EQ(ask(p, {.op = Op::append, .key = "k", .value = "c"}), "");
  EXPECT_EQ(engine.get("k"), "abc");
  EXPECT_EQ(engine.bytes(), 4U);
}

TEST_P(EngineD, PingEchoes) {
  EXPECT_EQ(hex(ask(peer(), {.op = Op::ping, .number = 0x01020304})), "04030201");
}

TEST_P(EngineD, QueuesAreFirstInFirstOut) {
  Peer& p = peer();
  const std::vector<std::string_view> keys = {"q"};
  EXPECT_EQ(ask(p, {.op = Op::queue_pop, .key = "q"}), number(0));
  EXPECT_EQ(ask(p, {.op = Op::queue_push, .key = "q", .value = "1"}), "");
  EXPECT_EQ(ask(p, {.op = Op::queue_push, .key = "q", .value = ""}), "");
  EXPECT_EQ(ask(p, {.op = Op::queue_len, .key = "q"}), number(2));
  EXPECT_EQ(ask(p, {.op = Op::check, .items = keys}), std::string(1, '\0'));
  EXPECT_EQ(ask(p, {.op = Op::num_keys}), number(0));
  EXPECT_EQ(ask(p, {.op = Op::queue_pop, .key = "q"}), number(2) + text("1"));
  EXPECT_EQ(ask(p, {.op = Op::queue_pop, .key = "q"}), number(1) + text(""));
  EXPECT_EQ(ask(p, {.op = Op::queue_len, .key = "q"}), number(0));
  EXPECT_EQ(ask(p, {.op = Op::check, .items = keys}), "\1");
  EXPECT_EQ(engine.bytes(), 0U);
}

TEST_P(EngineD, APushWakesOneWaiter) {
  const std::vector<std::string_view> keys = {"q"};
  Peer& first = peer();
  Peer& second = peer();
  ask(first, {.op = Op::wait, .items = keys});
  ask(second, {.op = Op::wait, .items = keys});
  Peer& p = peer();
  ask(p, {.op = Op::queue_push, .key = "q"});
  EXPECT_EQ(engine.next_touched(), &first.session());
  EXPECT_EQ(engine.next_touched(), nullptr);
  ask(p, {.op = Op::queue_push, .key = "q"});
  EXPECT_EQ(engine.next_touched(), &second.session());
}

TEST_P(EngineD, APushIsNotLostOnWhoWaitsForMore) {
  const std::vector<std::string_view> twice = {"q", "q"};
  const std::vector<std::string_view> more = {"q", "other"};
  const std::vector<std::string_view> keys = {"q"};
  Peer& needs_more = peer();
  Peer& needs_one = peer();
  ask(needs_more, {.op = Op::wait, .items = more});
  ask(needs_one, {.op = Op::wait, .items = keys});
  Peer& p = peer();
  ask(p, {.op = Op::queue_push, .key = "q"});
  EXPECT_EQ(engine.next_touched(), &needs_one.session());
  EXPECT_EQ(engine.next_touched(), nullptr);
  ask(p, {.op = Op::queue_pop, .key = "q"});
  Peer& repeats = peer();
  ask(repeats, {.op = Op::wait, .items = twice});
  ask(p, {.op = Op::queue_push, .key = "q"});
  EXPECT_EQ(engine.next_touched(), &repeats.session());
}

TEST_P(EngineD, BarrierReleasesAllAtOnce) {
  Peer& first = peer();
  Peer& second = peer();
  Peer& third = peer();
  const Request barrier = {.op = Op::barrier, .key = "b", .number = 3};
  EXPECT_EQ(ask(first, barrier), "");
  EXPECT_EQ(ask(second, barrier), "");
  EXPECT_EQ(engine.get("b"), "2");
  EXPECT_EQ(engine.next_touched(), nullptr);
  EXPECT_EQ(ask(third, barrier), std::string(1, '\0'));
  EXPECT_EQ(first.take() + second.take(), std::string(2, '\0'));
  EXPECT_EQ(engine.parked(), 0U);
  EXPECT_EQ(ask(third, barrier), std::string(1, '\0'));  // not reset: open for good
}

TEST_P(EngineD, ACanceledBarrierStillCounts) {
  Peer& p = peer();
  ask(p, {.op = Op::barrier, .key = "b", .number = 2});
  EXPECT_EQ(ask(p, {.op = Op::cancel_wait}), "\1");
  EXPECT_EQ(ask(p, {.op = Op::barrier, .key = "b", .number = 2}), std::string(1, '\0'));
}

TEST_P(EngineD, ListKeysGivesRawNames) {
  Peer& p = peer();
  ask(p, {.op = Op::add, .key = "init/", .number = 1});
  EXPECT_EQ(ask(p, {.op = Op::list_keys}), number(1) + text("init/"));
}

TEST_P(EngineD, RepliesAreBounded) {
  Engine small({.max_message_bytes = 1000});
  Peer p(small);
  p.feed(greeting(Dialect::d, 1));
  small.set("k", std::string(400, 'x'));
  const std::vector<std::string_view> keys = {"k", "k", "k"};
  p.feed(testing::bytes_of(Dialect::d, {.op = Op::multi_get, .items = {keys.data(), 2}}));
  EXPECT_TRUE(p.open());
  p.feed(testing::bytes_of(Dialect::d, {.op = Op::multi_get, .items = keys}));
  EXPECT_FALSE(p.open());
}

TEST_P(EngineTest, PurgeForgetsKeysQueuesAndWaits) {
  Peer& p = peer();
  const std::vector<std::string_view> keys = {"later", "/keep/later"};
  engine.set("init/", "4");
  engine.set("/keep/x", "1");
  ask(p, {.op = Op::wait, .items = keys});
  ask(p, {.op = Op::wait, .items = {&keys[1], 1}});
  const std::vector<std::string> kept = {"/keep/"};
  engine.purge_except(kept);
  EXPECT_EQ(engine.num_keys(), 1U);
  EXPECT_EQ(engine.bytes(), 8U);
  EXPECT_EQ(engine.parked(), 1U);
  engine.set("/keep/later", "");
  engine.set("later", "");
  EXPECT_EQ(p.take(), std::string(1, '\0'));
  engine.purge();
  EXPECT_EQ(engine.num_keys(), 0U);
  EXPECT_EQ(engine.bytes(), 0U);
  EXPECT_EQ(ask(p, {.op = Op::add, .key = "init/", .number = 1}), number(1));
}

// Waits are found by key. Scanning all waiters at each write would take 10^8 steps here.
TEST(EngineScale, TenThousandParkedWaits) {
  const double before = testing::cpu_seconds();
  Engine engine;
  std::deque<Peer> peers;
  std::vector<std::string> names;
  names.reserve(100);
  for (int i = 0; i < 100; ++i)
    names.push_back("/common/" + std::to_string(i));
  for (int i = 0; i < 10'000; ++i) {
    std::vector<std::string_view> keys(names.begin(), names.end());
    const std::string own = "/own/" + std::to_string(i);
    keys.push_back(own);
    Peer& peer = peers.emplace_back(engine);
    peer.feed(greeting(Dialect::d, 1));
    peer.feed(testing::bytes_of(Dialect::d, {.op = Op::wait, .items = keys}));
    peer.take();
  }
  EXPECT_EQ(engine.parked(), 10'000U);
  for (int i = 0; i < 10'000; ++i)
    engine.set("/own/" + std::to_string(i), "x");
  for (std::size_t i = 0; i < 5'000; ++i)
    engine.drop(peers[2 * i].session());
  EXPECT_EQ(engine.parked(), 5'000U);
  for (const auto& name : names)
    engine.set(name, "x");
  EXPECT_EQ(engine.parked(), 0U);
  int woken = 0;
  while (engine.next_touched() != nullptr)
    ++woken;
  EXPECT_EQ(woken, 5'000);
  EXPECT_LT(testing::cpu_seconds() - before, 15);
}

}  // namespace
}  // namespace lockstep::store
