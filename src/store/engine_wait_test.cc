#include "store/store_testing.h"

#include <gtest/gtest.h>

namespace lockstep::store {
namespace {

using namespace std::chrono_literals;
using testing::bytes_of;
using testing::Peer;

TEST(EngineWitness, PidIsTheFirstPing) {
  Engine engine;
  Peer peer(engine);
  peer.feed(greeting(Dialect::d, 4711));
  EXPECT_EQ(peer.session().pid, 4711U);
  peer.feed(bytes_of(Dialect::d, {.op = Op::ping, .number = 5}));
  EXPECT_EQ(peer.session().pid, 4711U);
  Peer old(engine);
  old.feed(bytes_of(Dialect::a, {.op = Op::num_keys}));
  EXPECT_EQ(old.session().pid, 0U);
}

TEST(EngineWitness, WaitsWithTheirMissingKeysAndTime) {
  Engine engine;
  Peer peer(engine);
  constexpr std::string_view kKeys[] = {"a", "b", "c"};
  engine.tell_time(TimePoint(5s));
  peer.feed(greeting(Dialect::d, 1) + bytes_of(Dialect::d, {.op = Op::wait, .items = kKeys}));
  engine.tell_time(TimePoint(7s));
  peer.feed(bytes_of(Dialect::d, {.op = Op::barrier, .key = "bar", .number = 2}));
  engine.set("a", "");
  auto waits = engine.waits_of(peer.session(), 10, 10);
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_EQ(waits[0].keys, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(waits[0].since, TimePoint(5s));
  EXPECT_FALSE(waits[0].barrier);
  EXPECT_EQ(waits[1].keys, std::vector<std::string>{"bar"});
  EXPECT_EQ(waits[1].since, TimePoint(7s));
  EXPECT_TRUE(waits[1].barrier);
  waits = engine.waits_of(peer.session(), 1, 1);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].keys, std::vector<std::string>{"b"});
  EXPECT_EQ(waits[0].missing, 2U);
}

TEST(EngineWitness, KeysNameTheirCreator) {
  Engine engine;
  Peer one(engine);
  Peer two(engine);
  one.session().number = 1;
  two.session().number = 2;
  one.feed(greeting(Dialect::d, 1) +
           bytes_of(Dialect::d, {.op = Op::set, .key = "k", .value = "v"}));
  two.feed(greeting(Dialect::d, 2) +
           bytes_of(Dialect::d, {.op = Op::set, .key = "k", .value = "w"}) +
           bytes_of(Dialect::d, {.op = Op::add, .key = "n", .number = 3}));
  engine.set("own", "long value");
  bool all = true;
  auto keys = engine.keys_for([](std::string_view) { return true; }, {.value_bytes = 4}, all);
  std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  ASSERT_EQ(keys.size(), 3U);
  EXPECT_EQ(keys[0].creator, 1U);
  EXPECT_EQ(keys[0].value, "w");
  EXPECT_EQ(keys[1].creator, 2U);
  EXPECT_EQ(keys[2].creator, 0U);
  EXPECT_EQ(keys[2].value, "long");
  EXPECT_TRUE(all);
}

TEST(EngineWitness, LimitsSayThatKeysAreLeftOut) {
  Engine engine;
  for (int i = 0; i < 10; ++i)
    engine.set(std::to_string(i), "");
  bool all = true;
  const auto any = [](std::string_view) { return true; };
  EXPECT_EQ(engine.keys_for(any, {.keys = 10, .scanned_keys = 10}, all).size(), 10U);
  EXPECT_TRUE(all);
  EXPECT_EQ(engine.keys_for(any, {.keys = 9}, all).size(), 9U);
  EXPECT_FALSE(all);
  all = true;
  EXPECT_EQ(engine.keys_for(any, {.scanned_keys = 9}, all).size(), 9U);
  EXPECT_FALSE(all);
}

}  // namespace
}  // namespace lockstep::store
