#include "rendezvous/etcd3/etcd3_codec.h"

#include "rendezvous/etcd3/etcd3_facts.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::etcd3 {
namespace {

TEST(Etcd3Codec, Requests) {
  EXPECT_EQ(etcd3_put("k", "v", 7), R"({"key":"aw==","lease":"7","value":"dg=="})");
  EXPECT_EQ(etcd3_range("a", etcd3_prefix_end("a")), R"({"key":"YQ==","range_end":"Yg=="})");
  EXPECT_EQ(etcd3_grant(3), R"({"TTL":"3"})");
  EXPECT_EQ(etcd3_watch("k", "", 9), R"({"create_request":{"key":"aw==","start_revision":"9"}})");
  Etcd3Txn txn;
  txn.compare = {{Etcd3Compare::What::create_revision, "k", 0, {}}};
  txn.success = {{Etcd3Op::Kind::put, "k", "v", 0}};
  txn.failure = {{Etcd3Op::Kind::range, "k", {}, 0}, {Etcd3Op::Kind::remove, "l", {}, 0}};
  EXPECT_EQ(
      etcd3_txn(txn),
      R"({"compare":[{"create_revision":"0","key":"aw==","result":"EQUAL","target":"CREATE"}],)"
      R"("failure":[{"request_range":{"key":"aw=="}},{"request_delete_range":{"key":"bA=="}}],)"
      R"("success":[{"request_put":{"key":"aw==","value":"dg=="}}]})");
  EXPECT_EQ(etcd3_authenticate("u", "\xff\""),
            "{\"name\":\"u\",\"password\":\"\xEF\xBF\xBD\\\"\"}");
}

TEST(Etcd3Codec, PrefixEnd) {
  EXPECT_EQ(etcd3_prefix_end("/a/"), "/a0");
  EXPECT_EQ(etcd3_prefix_end("a\xff\xff"), "b");
  EXPECT_EQ(etcd3_prefix_end("\xff"), std::string(1, '\0'));
}

TEST(Etcd3Codec, Replies) {
  const auto range = parse_etcd3_reply(
      R"({"header":{"revision":"12"},"kvs":[{"key":"aw==","value":"dg==","create_revision":"3",)"
      R"("mod_revision":"4","version":"2","lease":"99"},{"key":"bA=="}],"count":"2"})");
  ASSERT_TRUE(range) << range.error().message;
  EXPECT_EQ(range->revision, 12);
  ASSERT_EQ(range->kvs.size(), 2U);
  EXPECT_EQ(range->kvs[0].value, "v");
  EXPECT_EQ(range->kvs[0].lease, 99);
  EXPECT_EQ(range->kvs[1].value, "");
  const auto kept = parse_etcd3_reply(R"({"result":{"header":{},"ID":"7","TTL":"3"}})");
  EXPECT_TRUE(kept && kept->ttl == 3 && kept->lease == 7);
  const auto txn = parse_etcd3_reply(
      R"({"succeeded":true,"responses":[{"response_put":{}},{"response_range":{"kvs":[{"key":"aw=="}]}}]})");
  ASSERT_TRUE(txn && txn->succeeded && txn->ranges.size() == 2);
  EXPECT_EQ(txn->ranges[1][0].key, "k");
}

TEST(Etcd3Codec, WatchReplies) {
  const auto events = parse_etcd3_watch(
      R"({"result":{"header":{"revision":"5"},"events":[{"kv":{"key":"aw==","mod_revision":"5"}},)"
      R"({"type":"DELETE","kv":{"key":"aw==","mod_revision":"6"}}]}})");
  ASSERT_TRUE(events && events->events.size() == 2);
  EXPECT_FALSE(events->events[0].deleted);
  EXPECT_TRUE(events->events[1].deleted);
  const auto gap = parse_etcd3_watch(R"({"result":{"canceled":true,"compact_revision":"8"}})");
  EXPECT_TRUE(gap && gap->canceled && gap->compact_revision == 8);
  const auto ended = parse_etcd3_watch(R"({"error":{"grpc_code":14,"message":"no leader"}})");
  EXPECT_TRUE(ended && ended->canceled && ended->reason == "no leader");
}

TEST(Etcd3Codec, Refusals) {
  const auto plain =
      parse_etcd3_refusal(R"({"error":"etcdserver: x","message":"etcdserver: x","code":16})");
  EXPECT_EQ(plain.code, kGrpcUnauthenticated);
  EXPECT_EQ(plain.message, "etcdserver: x");
  EXPECT_EQ(parse_etcd3_refusal("<html>").message, "<html>");
  EXPECT_EQ(parse_etcd3_refusal(R"({"kvs":[]})").code, 0);
}

// A token goes into a header field of later requests, perhaps to another member.
TEST(Etcd3Codec, ATokenHoldsNothingThatEndsAHeaderField) {
  EXPECT_EQ(parse_etcd3_reply(R"({"token":"ab.12-x"})")->token, "ab.12-x");
  for (const char* token :
       {R"({"token":"a\r\nX: y"})", R"({"token":"a b"})", R"({"token":"\u00e4"})"})
    EXPECT_FALSE(parse_etcd3_reply(token)) << token;
  EXPECT_FALSE(parse_etcd3_reply(R"({"token":")" + std::string(9000, 'a') + "\"}"));
}

TEST(Etcd3Codec, ARevisionHasALaterOne) {
  const auto reply = parse_etcd3_reply(
      R"({"header":{"revision":"9223372036854775807"},"kvs":[{"mod_revision":"-1"}]})");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->revision, INT64_MAX / 2);
  EXPECT_EQ(reply->kvs[0].mod_revision, 0);
  const auto watched = parse_etcd3_watch(
      R"({"result":{"events":[{"kv":{"key":"aw==","mod_revision":"9223372036854775807"}}]}})");
  ASSERT_TRUE(watched);
  EXPECT_EQ(watched->events[0].kv.mod_revision, INT64_MAX / 2);
}

TEST(Etcd3Codec, AnAnswerIsBounded) {
  const std::string spaces(kEtcd3AnswerLimit - 2, ' ');
  EXPECT_TRUE(parse_etcd3_reply("{" + spaces + "}"));
  EXPECT_FALSE(parse_etcd3_reply("{ " + spaces + "}"));
  EXPECT_FALSE(parse_etcd3_watch("{ " + spaces + "}"));
  std::string events = "{}";
  for (int i = 0; i < 5000; ++i)
    events += ",{}";
  EXPECT_FALSE(parse_etcd3_watch(R"({"result":{"events":[)" + events + "]}}"));
}

TEST(Etcd3Codec, Garbage) {
  for (const char* text : {"", "[]", "1", "{\"kvs\":[1]}", "{\"kvs\":[{\"key\":\"!\"}]}",
                           "{\"responses\":[1]}", "\xff{"})
    EXPECT_FALSE(parse_etcd3_reply(text)) << text;
  for (const char* text : {"", "[]", R"({"result":{"events":[1]}})"})
    EXPECT_FALSE(parse_etcd3_watch(text)) << text;
  EXPECT_TRUE(parse_etcd3_reply(R"({"header":1,"kvs":{},"ID":"x","TTL":[],"succeeded":"no"})"));
}

TEST(Etcd3Facts, TheLaterRoundIsKeptAndTheEndStays) {
  const auto of = [](std::int64_t round, bool closed, const std::string& why) {
    Etcd3Facts facts;
    facts.round = round;
    facts.closed = closed;
    facts.why = why;
    return facts;
  };
  Etcd3Facts known = of(2, true, "over");
  merge_facts(known, of(1, false, ""));
  EXPECT_EQ(known, of(2, true, "over"));
  merge_facts(known, of(3, false, ""));
  EXPECT_EQ(known, of(3, true, "over"));
  known = of(3, false, "");
  merge_facts(known, of(2, true, "failed"));
  EXPECT_EQ(known, of(3, true, "failed"));
}

TEST(Etcd3Facts, ThereAndBack) {
  const Etcd3Facts facts{7, 2, true, "rank 3 failed", true, 1, {0, 5}};
  EXPECT_EQ(parse_etcd3_facts(print_etcd3_facts(facts)), facts);
  for (const char* text : {"", "{}", R"({"round":"1","restarts":0,"closed":false})",
                           R"({"round":1,"restarts":-1,"closed":false})",
                           R"({"round":1,"restarts":99999999999,"closed":false})",
                           R"({"round":1,"restarts":1,"closed":0})"})
    EXPECT_FALSE(parse_etcd3_facts(text)) << text;
}

TEST(Etcd3Facts, WhatOnlyHelpsMayBeMissingOrNonsense) {
  const std::string start = R"({"round":1,"restarts":0,"closed":false)";
  EXPECT_EQ(parse_etcd3_facts(start + "}"), Etcd3Facts({1, 0, false, ""}));
  const auto facts =
      parse_etcd3_facts(start + R"(,"why":3,"good":1,"lead":-2,"finished":[2,-1,"x",1e9,99999]})");
  ASSERT_TRUE(facts);
  EXPECT_EQ(*facts, Etcd3Facts({1, 0, false, "", false, -1, {2}}));
}

TEST(Etcd3Facts, ARoundThatNoNextOneFollowsIsNone) {
  for (const char* round : {"9223372036854775807", "18446744073709551615", "-2", "1e3"}) {
    const std::string text = std::string(R"({"restarts":0,"closed":false,"round":)") + round + "}";
    EXPECT_FALSE(parse_etcd3_facts(text)) << text;
  }
}

}  // namespace
}  // namespace lockstep::rendezvous::etcd3
