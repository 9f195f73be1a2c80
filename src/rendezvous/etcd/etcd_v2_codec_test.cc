#include "rendezvous/etcd/etcd_v2_codec.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::etcd {
namespace {

http::Answer answer(int status, std::string body) {
  http::Answer made;
  made.head.status = status;
  made.head.fields = {{"x-etcd-index", "35"}};
  made.body = std::move(body);
  return made;
}

TEST(EtcdV2Codec, Calls) {
  const http::Call put = v2_put("/a b/c+/=?\xC3", {{"value", "x+/= &"}, {"prevExist", "false"}});
  EXPECT_EQ(put.method, "PUT");
  EXPECT_EQ(put.target, "/v2/keys/a%20b/c+/=%3F%C3");
  EXPECT_EQ(put.body, "value=x%2B%2F%3D%20%26&prevExist=false");
  EXPECT_EQ(v2_get("/a", "wait=true&waitIndex=7").target, "/v2/keys/a?wait=true&waitIndex=7");
  EXPECT_EQ(v2_get("/a\r\nHost: b", "").target, "/v2/keys/a%0D%0AHost:%20b");
}

TEST(EtcdV2Codec, Replies) {
  const auto set = parse_v2_reply(answer(
      200,
      R"({"action":"set","node":{"key":"/a","value":"v","modifiedIndex":8,"createdIndex":8}})"));
  ASSERT_TRUE(set);
  EXPECT_EQ(set->value, "v");
  EXPECT_EQ(set->modified, 8U);
  EXPECT_EQ(set->index, 35U);
  EXPECT_FALSE(set->gone);
  const auto gone = parse_v2_reply(answer(200, R"({"action":"expire","node":{"key":"/a"}})"));
  EXPECT_TRUE(gone && gone->gone);
  for (const int code : {kV2NoKey, kV2CompareFailed, kV2Exists, kV2IndexCleared}) {
    const auto reply = parse_v2_reply(
        answer(404, R"({"errorCode":)" + std::to_string(code) + R"(,"message":"m","index":40})"));
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->error, code);
    EXPECT_EQ(reply->index, 40U);
  }
}

TEST(EtcdV2Codec, Refusals) {
  const auto denied = parse_v2_reply(answer(401, R"({"errorCode":110,"message":"m","cause":"c"})"));
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().message, "etcd refuses: m (c, code 110)");
  EXPECT_EQ(code_of(denied), Errc::denied);
  const auto off = parse_v2_reply(answer(404, "404 page not found\n"));
  ASSERT_FALSE(off);
  EXPECT_NE(off.error().hint.find("--enable-v2"), std::string::npos);
  for (const char* text : {"", "[]", "{}", "{\"node\":1}", "{\"node\":{}", "\xff"})
    EXPECT_FALSE(parse_v2_reply(answer(200, text))) << text;
  EXPECT_TRUE(parse_v2_reply(answer(200, R"({"node":{"value":1,"modifiedIndex":"x"}})")));
}

}  // namespace
}  // namespace lockstep::rendezvous::etcd
