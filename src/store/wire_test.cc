#include "store/wire.h"

#include "store/store_testing.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace lockstep::store {
namespace {
using testing::hex;
using testing::Peer;
using testing::unhex;

constexpr std::string_view kHello = "00 CEF7853C 0D 99120000";

// Byte samples captured from PyTorch 1.13, 2.6 and 2.14, in both dialects.
TEST(Wire, SamplesOfTheNewerDialect) {
  Engine engine;
  Peer peer(engine);
  EXPECT_EQ(peer.ask(kHello), "99120000");
  EXPECT_EQ(peer.ask("04 0500000000000000 696E69742F 0100000000000000"), "0100000000000000");
  EXPECT_EQ(peer.ask("01 0300000000000000 2F6B31 0200000000000000 7631"), "");
  EXPECT_EQ(peer.ask("06 0100000000000000 0300000000000000 2F6B31"), "00");
  EXPECT_EQ(peer.ask("03 0300000000000000 2F6B31"), "02000000000000007631");
  engine.set("/ctr", "5");
  EXPECT_EQ(peer.ask("04 0400000000000000 2F637472 F9FFFFFFFFFFFFFF"), "feffffffffffffff");
  EXPECT_EQ(engine.get("/ctr"), "-2");
  EXPECT_EQ(peer.ask("05 0200000000000000 0300000000000000 2F6B31 0500000000000000 2F6E6F7065"),
            "01");
  EXPECT_EQ(peer.ask("02 0400000000000000 2F636173 0000000000000000 0100000000000000 41"),
            "010000000000000041");
  EXPECT_EQ(peer.ask("02 0500000000000000 2F63617332 0100000000000000 58 0100000000000000 41"),
            "010000000000000058");
  EXPECT_EQ(peer.ask("06 0100000000000000 0500000000000000 2F6E6F7065"), "");
  EXPECT_EQ(peer.ask("0C"), "01");
  EXPECT_EQ(engine.parked(), 0U);
  EXPECT_TRUE(peer.open());
}

TEST(Wire, SamplesOfTheOlderDialect) {
  Engine engine;
  Peer peer(engine);
  EXPECT_EQ(peer.ask("03 0500000000000000 696E69742F 0100000000000000"), "0100000000000000");
  EXPECT_EQ(peer.ask("00 0300000000000000 2F6B31 0200000000000000 7631"), "");
  EXPECT_EQ(peer.ask("05 0100000000000000 0300000000000000 2F6B31"), "00");
  EXPECT_EQ(peer.ask("02 0300000000000000 2F6B31"), "02000000000000007631");
  engine.set("/ctr", "5");
  EXPECT_EQ(peer.ask("03 0400000000000000 2F637472 F9FFFFFFFFFFFFFF"), "feffffffffffffff");
  EXPECT_EQ(peer.ask("04 0200000000000000 0300000000000000 2F6B31 0500000000000000 2F6E6F7065"),
            "01");
  EXPECT_EQ(peer.ask("01 0400000000000000 2F636173 0000000000000000 0100000000000000 41"),
            "010000000000000041");
  EXPECT_EQ(peer.ask("01 0500000000000000 2F63617332 0100000000000000 58 0100000000000000 41"),
            "010000000000000058");
  EXPECT_TRUE(peer.open());
}

TEST(Wire, OlderClientMayBeginWithSet) {
  Engine engine;
  Peer peer(engine);
  peer.feed_pieces(unhex("00 0300000000000000 2F6B31 0200000000000000 7631"), 1);
  EXPECT_EQ(peer.reader().dialect(), Dialect::a);
  EXPECT_EQ(engine.get("/k1"), "v1");
}

TEST(Wire, BothDialectsShareTheKeySpace) {
  Engine engine;
  Peer old_peer(engine);
  Peer new_peer(engine);
  EXPECT_EQ(old_peer.ask("05 0100000000000000 0200000000000000 2F78"), "");
  EXPECT_EQ(new_peer.ask("00CEF7853C 01 0200000000000000 2F78 0100000000000000 79"), "");
  EXPECT_EQ(engine.next_touched(), &old_peer.session());
  EXPECT_EQ(hex(old_peer.take()), "00");
}

TEST(Wire, ViolationsAreErrors) {
  const std::array<std::string_view, 14> bad = {
      "00 DEADBEEF",            // neither magic nor an older SET's length
      "00CEF7853C 00CEF7853C",  // VALIDATE twice
      "00CEF7853C 13",          // unknown operation
      "00CEF7853C FF",          //
      "FF",
      "0C",
      "47455420 2F20",                                       // "GET / "
      "00CEF7853C 01 0000000001000000",                      // a key of 4 GiB
      "00CEF7853C 01 FFFFFFFFFFFFFFFF",                      //
      "00CEF7853C 01 0100000000000000 6B 0000004000000000",  // a value of 1 GiB
      "00CEF7853C 06 FFFFFFFFFFFFFFFF",                      // 2^64-1 keys
      "00CEF7853C 0B 0100020000000000",                      // 131073 pairs
      "00CEF7853C 0A 0100000000000000 FFFFFFFFFFFFFF7F",     //
      "03 0100010000000000",                                 // a key of 65537 bytes
  };
  for (const auto sample : bad) {
    Engine engine;
    Peer whole(engine);
    whole.feed(unhex(sample));
    EXPECT_FALSE(whole.open()) << sample;
    Peer pieces(engine);
    pieces.feed_pieces(unhex(sample), 1);
    EXPECT_EQ(pieces.verdict(), whole.verdict()) << sample;
    pieces.feed(unhex(kHello));
    EXPECT_EQ(hex(pieces.take()), "") << sample;
  }
}

TEST(Wire, LimitsAreExact) {
  const Limits limits{
      .max_key_bytes = 3, .max_value_bytes = 4, .max_keys = 2, .max_message_bytes = 40};
  const auto verdict = [&](const Request& request) {
    Engine engine(limits);
    Peer peer(engine);
    peer.feed(greeting(Dialect::d, 1) + testing::bytes_of(Dialect::d, request));
    return peer.verdict();
  };
  EXPECT_EQ(verdict({.op = Op::set, .key = "abc", .value = "1234"}), "");
  EXPECT_EQ(verdict({.op = Op::set, .key = "abcd"}), "key of 4 bytes in SET, the limit is 3");
  EXPECT_EQ(verdict({.op = Op::append, .key = "abc", .value = "12345"}),
            "value of 5 bytes in APPEND, the limit is 4");
  const std::vector<std::string_view> keys = {"a", "b", "c"};
  EXPECT_EQ(verdict({.op = Op::check, .items = {keys.data(), 2}}), "");
  EXPECT_EQ(verdict({.op = Op::check, .items = keys}), "3 keys in CHECK, the limit is 2");
  const std::vector<std::string_view> pairs = {"a", "1234", "b", "1234"};
  EXPECT_EQ(verdict({.op = Op::multi_set, .items = pairs}), "MULTI_SET of more than 40 bytes");
}

// A declared length must cost nothing before its bytes have arrived.
TEST(Wire, DeclaredLengthsAllocateNothing) {
  Limits limits;
  limits.max_value_bytes = std::size_t{1} << 40;
  limits.max_message_bytes = std::size_t{1} << 41;
  limits.max_keys = std::size_t{1} << 40;
  Engine engine(limits);
  Peer value(engine);
  value.feed(unhex("00CEF7853C 01 0100000000000000 6B 0000000001000000 61"));
  Peer keys(engine);
  keys.feed(unhex("00CEF7853C 06 0000000001000000 0100000000000000 61"));
  EXPECT_TRUE(value.open() && keys.open());
  EXPECT_LT(value.reader().buffered(), 64U);
  EXPECT_LT(keys.reader().buffered(), 64U);
}

std::vector<Request> every_request() {
  static const std::vector<std::string_view> keys = {"k", "", "k"};
  static const std::vector<std::string_view> pairs = {"k", "v", "l", ""};
  return {{.op = Op::set, .key = "k", .value = "v"},
          {.op = Op::compare_set, .key = "k", .value = "v", .desired = "w"},
          {.op = Op::get, .key = "k"},
          {.op = Op::add, .key = "n", .number = -3},
          {.op = Op::check, .items = keys},
          {.op = Op::wait, .items = keys},
          {.op = Op::wait},
          {.op = Op::num_keys},
          {.op = Op::watch_key, .key = "k"},
          {.op = Op::delete_key, .key = "k"},
          {.op = Op::append, .key = "k", .value = "x"},
          {.op = Op::multi_get, .items = keys},
          {.op = Op::multi_set, .items = pairs},
          {.op = Op::cancel_wait},
          {.op = Op::ping, .number = 0xfedcba98},
          {.op = Op::queue_push, .key = "q", .value = "1"},
          {.op = Op::queue_pop, .key = "q"},
          {.op = Op::queue_len, .key = "q"},
          {.op = Op::list_keys},
          {.op = Op::barrier, .key = "b", .number = 2}};
}

TEST(Wire, WhatIsWrittenIsReadBack) {
  for (const Dialect dialect : {Dialect::a, Dialect::d}) {
    for (const Request& sent : every_request()) {
      if (!opcode(dialect, sent.op)) continue;
      const Limits limits;
      RequestReader reader(limits);
      // The dialect must be known first: the newer one begins with VALIDATE, the older one with any
      // request, here GETNUMKEYS.
      const std::string bytes = dialect == Dialect::d ? unhex("00CEF7853C") : unhex("06");
      std::string all = bytes + testing::bytes_of(dialect, sent);
      std::string_view chunk = all;
      Request got;
      ASSERT_EQ(reader.next(chunk, got), RequestReader::Step::request);
      got = {};
      ASSERT_EQ(reader.next(chunk, got), RequestReader::Step::request) << op_name(sent.op);
      EXPECT_TRUE(chunk.empty());
      EXPECT_EQ(got.op, sent.op);
      EXPECT_EQ(got.key, sent.key);
      EXPECT_EQ(got.value, sent.value);
      EXPECT_EQ(got.desired, sent.desired);
      EXPECT_EQ(got.number, sent.number);
      EXPECT_TRUE(
          std::equal(got.items.begin(), got.items.end(), sent.items.begin(), sent.items.end()));
    }
  }
}

TEST(Wire, OlderDialectLacksTheNewerOperations) {
  std::string out;
  EXPECT_FALSE(put_request(out, Dialect::a, {.op = Op::barrier, .key = "k"}));
  EXPECT_FALSE(put_request(out, Dialect::d, {.op = Op::watch_key, .key = "k"}));
  EXPECT_EQ(out, "");
}

// However the bytes are split, the same replies and the same key space result.
TEST(Wire, SplitsDoNotMatter) {
  std::mt19937 random(20240917);
  for (const Dialect dialect : {Dialect::a, Dialect::d}) {
    for (int round = 0; round < 200; ++round) {
      std::string bytes = greeting(dialect, 7);
      const auto requests = every_request();
      for (int i = 0; i < 30; ++i) {
        const Request& request = requests[random() % requests.size()];
        if (opcode(dialect, request.op)) bytes += testing::bytes_of(dialect, request);
      }
      Engine at_once_engine;
      Peer at_once(at_once_engine);
      at_once.feed(bytes);
      Engine pieces_engine;
      Peer pieces(pieces_engine);
      if (round == 0) {
        pieces.feed_pieces(bytes, 1);
      } else {
        std::string_view rest = bytes;
        while (!rest.empty()) {
          const std::size_t size = std::min<std::size_t>(1 + random() % 40, rest.size());
          pieces.feed_pieces(rest.substr(0, size), size);
          rest.remove_prefix(size);
        }
      }
      ASSERT_EQ(hex(pieces.take()), hex(at_once.take())) << "round " << round;
      ASSERT_EQ(pieces.verdict(), at_once.verdict());
      ASSERT_EQ(pieces.requests, at_once.requests);
      ASSERT_EQ(pieces_engine.bytes(), at_once_engine.bytes());
    }
  }
}

// Parsing the same bytes again for each piece would take minutes here.
TEST(Wire, LargeMessagesTakeLinearTime) {
  const double before = testing::cpu_seconds();
  Engine engine;
  Peer peer(engine);
  std::string names;
  put_u8(names, 5);
  put_u64(names, 128 << 10);
  for (int i = 0; i < 128 << 10; ++i)
    put_string(names, "/key/" + std::to_string(i));
  peer.feed(greeting(Dialect::d, 1));
  peer.feed_pieces(names, 7);
  const std::string value(64 << 20, 'v');
  peer.feed_pieces(testing::bytes_of(Dialect::d, {.op = Op::set, .key = "big", .value = value}),
                   1000);
  EXPECT_EQ(peer.take().size(), 4U + 1U);
  EXPECT_EQ(engine.get("big")->size(), value.size());
  peer.feed(testing::bytes_of(Dialect::d, {.op = Op::num_keys}));
  EXPECT_EQ(peer.reader().buffered(), 0U);
  EXPECT_LT(testing::cpu_seconds() - before, 20);
}

}  // namespace
}  // namespace lockstep::store
