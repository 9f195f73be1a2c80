#include "rendezvous/dynamic/state_codec.h"

#include "codec/base64.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace lockstep::rendezvous::dynamic {
namespace {
using namespace std::chrono_literals;
using namespace std::string_literals;

// States as stored by real agents.
constexpr std::string_view kTorch214 =
    "gAWVaAEAAAAAAACMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRl"
    "enZvdXOUjBBfUmVuZGV6dm91c1N0YXRllJOUKYGUfZQojAVyb3VuZJRLAIwIY29tcGxldGWUiYwIZGVhZGxp"
    "bmWUTowGY2xvc2VklImMDHBhcnRpY2lwYW50c5R9lGgAjAlfTm9kZURlc2OUk5QpgZR9lCiMBGFkZHKUjAkx"
    "MjcuMC4wLjOUjANwaWSUTXRnjAhsb2NhbF9pZJRLAHViSwBzjAl3YWl0X2xpc3SUj5SMD3JlZHVuZGFuY3lf"
    "bGlzdJSPlIwPbGFzdF9oZWFydGJlYXRzlH2UaA2MCGRhdGV0aW1llIwIZGF0ZXRpbWWUk5RDCgfqCxUAEzkB"
    "YQOUaBmMCHRpbWV6b25llJOUaBmMCXRpbWVkZWx0YZSTlEsASwBLAIeUUpSFlFKUhpRSlHN1Yi4=";
constexpr std::string_view kTorch113 =
    "gASVJwEAAAAAAACMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRl"
    "enZvdXOUjBBfUmVuZGV6dm91c1N0YXRllJOUKYGUfZQojAVyb3VuZJRLAIwIY29tcGxldGWUiYwIZGVhZGxp"
    "bmWUTowGY2xvc2VklImMDHBhcnRpY2lwYW50c5R9lGgAjAlfTm9kZURlc2OUk5QpgZR9lCiMBGZxZG6UjAls"
    "b2NhbGhvc3SUjANwaWSUTXdrjAhsb2NhbF9pZJRLAHViSwBzjAl3YWl0X2xpc3SUj5SMD2xhc3RfaGVhcnRi"
    "ZWF0c5R9lGgNjAhkYXRldGltZZSMCGRhdGV0aW1llJOUQwoH6gsVABQIAOcklIWUUpRzdWIu";
constexpr std::string_view kHandMade =
    "gASMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRlenZvdXOMEF9S"
    "ZW5kZXp2b3VzU3RhdGWTKYF9KIwFcm91bmRLAYwIY29tcGxldGWIjAhkZWFkbGluZU6MBmNsb3NlZImMDHBh"
    "cnRpY2lwYW50c30ojDd0b3JjaC5kaXN0cmlidXRlZC5lbGFzdGljLnJlbmRlenZvdXMuZHluYW1pY19yZW5k"
    "ZXp2b3VzjAlfTm9kZURlc2OTKYF9KIwEYWRkcowFbm9kZUGMA3BpZEtkjAhsb2NhbF9pZEsAdWKUSwCMN3Rv"
    "cmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRlenZvdXOMCV9Ob2RlRGVz"
    "Y5MpgX0ojARhZGRyjAVub2RlQowDcGlkSnARAQCMCGxvY2FsX2lkSwB1YpRLAXWMCXdhaXRfbGlzdI8okIwP"
    "cmVkdW5kYW5jeV9saXN0jyiQjA9sYXN0X2hlYXJ0YmVhdHN9KGgAjAhkYXRldGltZYwIZGF0ZXRpbWWTQwoH"
    "6gECAwQFClv1jAhkYXRldGltZYwIdGltZXpvbmWTjAhkYXRldGltZYwJdGltZWRlbHRhk0sASwBLAIdShVKG"
    "UmgBjAhkYXRldGltZYwIZGF0ZXRpbWWTQwoH6gECAwQFClv1jAhkYXRldGltZYwIdGltZXpvbmWTjAhkYXRl"
    "dGltZYwJdGltZWRlbHRhk0sASwBLAIdShVKGUnV1Yi4=";

UtcTime utc(int year, int month, int day, std::chrono::microseconds time) {
  return UtcTime(std::chrono::sys_days(std::chrono::year(year) / month / day)) + time;
}

// Returns the pickle of kTorch214 with `from` replaced by text of the same size: a frame has a
// length.
std::string altered(std::string_view from, std::string_view to) {
  std::string bytes = codec::base64_decode(kTorch214).value();
  const std::size_t at = bytes.find(from);
  LOCKSTEP_CHECK(at != std::string::npos && from.size() == to.size());
  bytes.replace(at, from.size(), to);
  return codec::base64_encode(bytes);
}

Error refused(std::string_view base64) {
  const auto state = decode_state(base64);
  return state ? Error{Errc::internal, "accepted", {}, 0} : state.error();
}
std::string corrupt(std::string_view base64) {
  const Error error = refused(base64);
  constexpr std::string_view kStart = "the rendezvous state is corrupt: ";
  if (error.code != Errc::corrupt || !error.message.starts_with(kStart)) return "not corrupt";
  return error.message.substr(kStart.size());
}

RendezvousState state_of_torch_2_14() {
  const Node node{"127.0.0.3", 26484, 0};
  RendezvousState state;
  state.participants = {{node, 0}};
  state.last_heartbeats = {{node, utc(2026, 11, 21, 19min + 57s + 90371us)}};
  return state;
}

TEST(StateCodec, RealStateOf214) {
  EXPECT_EQ(decode_state(kTorch214).value(), state_of_torch_2_14());
}

TEST(StateCodec, HandMadeStateThatRealAgentsTook) {
  const Node a{"nodeA", 100, 0};
  const Node b{"nodeB", 70000, 0};
  RendezvousState state;
  state.round = 1;
  state.complete = true;
  state.participants = {{a, 0}, {b, 1}};
  const UtcTime time = utc(2026, 1, 2, 3h + 4min + 5s + 678901us);
  state.last_heartbeats = {{a, time}, {b, time}};
  EXPECT_EQ(decode_state(kHandMade).value(), state);
}

TEST(StateCodec, RealStateOf113IsRefusedNotCorrupt) {
  const Error error = refused(kTorch113);
  EXPECT_EQ(error.code, Errc::invalid_input);
  EXPECT_EQ(error.message,
            "the rendezvous state was written by an agent of PyTorch 1.13 or of another release "
            "before 2.3 (its nodes have the field 'fqdn'), which cannot share a job with newer "
            "agents");
  EXPECT_NE(error.hint.find("same launcher on all nodes"), std::string::npos);
}

TEST(StateCodec, OtherSignsOfAnOldAgent) {
  // A 1.13 state without nodes shows no other sign.
  EXPECT_NE(refused(altered("redundancy_list", "redundancy_lost"))
                .message.find("(it has no 'redundancy_list')"),
            std::string::npos);
  // datetime(bytes) instead of datetime(bytes, timezone).
  std::string bytes = codec::base64_decode(kTorch214).value();
  const std::string time =
      "datetime\x94\x93\x94"
      "C\x0a\x07\xea\x0b\x15\0\x13\x39\1\x61\3\x94"s;
  const auto at = bytes.find(time);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at + time.size(), bytes.size() - at - time.size(), "\x85Rsub.");
  bytes.erase(2, 9);  // remove the frame header
  EXPECT_NE(refused(codec::base64_encode(bytes)).message.find("(its times have no time zone)"),
            std::string::npos)
      << refused(codec::base64_encode(bytes)).message;
}

TEST(StateCodec, AllOfAStateComesBack) {
  RendezvousState state;
  state.round = 300;
  state.complete = true;
  state.closed = true;
  state.deadline = utc(1, 1, 1, 0us);
  for (int i = 0; i < 1500; ++i) {
    const Node node{"host-" + std::to_string(i), 1 + i * 100, i % 3};
    state.participants[node] = i;
    if (i % 5 == 0) state.wait_list.insert(node);
    if (i % 7 == 0) state.redundancy_list.insert(node);
    state.last_heartbeats[node] = utc(1969 + i, 1 + i % 12, 28, i * 57s + i * 1us);
  }
  const Node longest{std::string(300, 'h') + "\xc3\xb6", 4'000'000'000, -1};
  state.last_heartbeats[longest] = utc(9999, 12, 31, 24h - 1us);
  state.completion = Completion{300, 1500};
  state.changes = 70'000;
  const std::string text = encode_state(state).value();
  EXPECT_LT(text.size(), 180'000U);  // nodes and names are stored once
  EXPECT_EQ(decode_state(text).value(), state);
  EXPECT_EQ(decode_state(encode_state({}).value()).value(), RendezvousState{});
}

TEST(StateCodec, AnAgentOfOursIsKnownByItsLocalId) {
  const auto id = [](std::int64_t local_id) { return Node{"10.0.0.1", 1, local_id}; };
  EXPECT_FALSE(badge_of(id(0)));
  EXPECT_FALSE(badge_of(id(-1)));
  EXPECT_FALSE(badge_of(id(local_id_of({}) + 0x10000)));
  EXPECT_FALSE(badge_of(id(local_id_of({})))->node_rank);
  const auto badge = badge_of(id(local_id_of({.host = true, .node_rank = 0})));
  ASSERT_TRUE(badge);
  EXPECT_TRUE(badge->host);
  EXPECT_EQ(badge->node_rank, 0);
  EXPECT_EQ(badge_of(id(local_id_of({.host = false, .node_rank = 32765})))->node_rank, 32765);
  EXPECT_LT(local_id_of({.host = true, .node_rank = 32765}), INT32_MAX);  // must fit a BININT
}

TEST(StateCodec, UnknownAttributesAreKeptAndWrittenBack) {
  const auto pair =
      codec::pickle_items(codec::PickleValue::Kind::tuple,
                          {codec::pickle_text("deep"), codec::pickle_bytes("\0\xff"s)});
  RendezvousState state = state_of_torch_2_14();
  state.unknown = {{"epoch", codec::pickle_int(17)}, {"notes", pair}};
  const auto read = decode_state(encode_state(state).value()).value();
  ASSERT_EQ(read.unknown.size(), 2U);
  EXPECT_EQ(read.unknown[0].first, "epoch");
  EXPECT_EQ(read.unknown[0].second->number, 17);
  EXPECT_EQ(read.unknown[1].second->items[1]->text, "\0\xff"s);
  EXPECT_EQ(encode_state(read).value(), encode_state(state).value());
}

TEST(StateCodec, WhatIsNoStateIsCorruptAndSaysWhy) {
  EXPECT_EQ(corrupt(""), "pickle, offset 0, end: the bytes end too early");
  EXPECT_EQ(corrupt("not base64!!"), "not a base64 character at offset 3");
  EXPECT_EQ(corrupt(kNoState), "pickle, offset 0, GLOBAL: a pickle starts with PROTO");
  EXPECT_EQ(corrupt(codec::base64_encode("\x80\4N.")), "it is not a _RendezvousState");
  EXPECT_EQ(corrupt(codec::base64_encode("\x80\4\x8c\2os\x8c\6system\x93\x8c\2id\x85R.")),
            "pickle, offset 14, STACK_GLOBAL: the global 'os.system' is not accepted");
  EXPECT_EQ(corrupt(altered("\5round", "\5Round")), "the attribute 'round' is missing");
  EXPECT_EQ(corrupt(altered("\6closed", "\6closet")), "the attribute 'closed' is missing");
  EXPECT_EQ(corrupt(altered("\x8c\x08"
                            "complete\x94\x89",
                            "\x8c\x08"
                            "complete\x94N")),
            "complete is not a bool");
  EXPECT_EQ(corrupt(altered("closed\x94\x89", "closed\x94N")), "closed is not a bool");
  EXPECT_EQ(corrupt(altered("deadline\x94N", "deadline\x94\x88")), "a time is not a datetime");
  EXPECT_EQ(corrupt(altered("wait_list\x94\x8f", "wait_list\x94}")), "wait_list is not a set");
  EXPECT_EQ(corrupt(altered("\4addr", "\4Addr")),
            "a node's field 'Addr' is unknown or of the wrong type");
  EXPECT_EQ(corrupt(altered("_NodeDesc", "_NodeDisc")).substr(0, 10), "pickle, of");
  EXPECT_EQ(corrupt(altered("K\0K\0K\0\x87"s, "K\0K\1K\0\x87"s)), "a datetime that is not in UTC");
  // Month 13, 31 November, hour 24, second 60, a million microseconds.
  for (const auto& time :
       {"\x07\xea\x0d\x15\0\x13\x39\1\x61\3"s, "\x07\xea\x0b\x1f\0\x13\x39\1\x61\3"s,
        "\x07\xea\x0b\x15\x18\x13\x39\1\x61\3"s, "\x07\xea\x0b\x15\0\x13\x3c\1\x61\3"s,
        "\x07\xea\x0b\x15\0\x13\x39\x0f\x42\x40"s}) {
    EXPECT_EQ(corrupt(altered("\x07\xea\x0b\x15\0\x13\x39\1\x61\3"s, time)),
              "a datetime that does not exist");
  }
}

TEST(StateCodec, CountersThatNobodyCanCountOnAreCorrupt) {
  RendezvousState state;
  state.round = INT64_MAX;
  EXPECT_EQ(corrupt(encode_state(state).value()), "round is 9223372036854775807");
  state.round = 0;
  state.changes = -1;
  EXPECT_EQ(corrupt(encode_state(state).value()), "lockstep_changes is -1");
}

TEST(StateCodec, EveryCutAndEveryFlippedByteIsReadOrRefused) {
  const std::string bytes = codec::base64_decode(kTorch214).value();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    EXPECT_EQ(refused(codec::base64_encode(bytes.substr(0, at))).code, Errc::corrupt);
    for (const int flip : {1, 0x80, 0xff}) {
      std::string other = bytes;
      other[at] = static_cast<char>(other[at] ^ flip);
      const auto state = decode_state(codec::base64_encode(other));
      if (state) {
        EXPECT_TRUE(encode_state(*state)) << at;
      }
    }
  }
}

TEST(StateCodec, WhatPeersCouldNotReadIsNotWritten) {
  RendezvousState state;
  state.wait_list = {{"\xff", 1, 0}};
  EXPECT_EQ(encode_state(state).error().message,
            "cannot write a rendezvous state: cannot write as a pickle: text that is not UTF-8");
  state.wait_list.clear();
  state.deadline = utc(10'000, 1, 1, 0us);
  EXPECT_EQ(encode_state(state).error().message,
            "cannot write a rendezvous state: a time outside the years 1 to 9999");
}

TEST(StateCodec, NodesAreOrderedByCodePoint) {
  const std::set<Node> nodes = {{"10.0.0.9", 1, 0}, {"10.0.0.10", 2, 0}, {"\xc3\xa4", 1, 0},
                                {"z", 10, 0},       {"z", 9, 1},         {"z", 9, 0}};
  std::string order;
  for (const Node& node : nodes)
    order += to_text(node) + " ";
  EXPECT_EQ(order, "10.0.0.10_2_0 10.0.0.9_1_0 z_9_0 z_9_1 z_10_0 \xc3\xa4_1_0 ");
}

}  // namespace
}  // namespace lockstep::rendezvous::dynamic
