#include "rendezvous/dynamic/join_wish.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::dynamic {
namespace {

TEST(JoinWish, ComesBackAsItWasWritten) {
  const JoinWish wish{{"a host, with spaces", 4711, local_id_of({true, 3})}, 17, true, 3};
  const std::string text = encode_wish(wish, "2:4:30:0");
  EXPECT_EQ(decode_wish(text, "2:4:30:0"), wish);
  const JoinWish first{{"10.0.0.1", 1, local_id_of({})}, 0, false, -1};
  EXPECT_EQ(decode_wish(encode_wish(first, "t"), "t"), first);
}

TEST(JoinWish, OtherTermsAndNonsenseAreNone) {
  const JoinWish wish{{"h", 1, local_id_of({})}, 0, false, -1};
  const std::string text = encode_wish(wish, "2:4:30:0");
  EXPECT_EQ(decode_wish(text, "2:3:30:0"), std::nullopt);
  const std::string id = std::to_string(local_id_of({}));
  ASSERT_TRUE(decode_wish("join t 0 0 -1 1 " + id + " h", "t"));
  for (const std::string& bad :
       {std::string(), std::string("void"), "leave t 0 0 -1 1 " + id + " h",
        "join t -1 0 -1 1 " + id + " h", "join t 0 2 -1 1 " + id + " h",
        "join t 0 0 -2 1 " + id + " h", "join t 0 0 -1 -1 " + id + " h", "join t 0 0 -1 1 " + id,
        "join t 0 0 -1 1 " + id + " ", "join t 0 0 -1 1 " + id + " \xff", std::string("join t 0"),
        std::string("join t 0 0 -1 1 7 h"), "join t 0 0 -1 1 " + id + " " + std::string(5000, 'h')})
    EXPECT_EQ(decode_wish(bad, "t"), std::nullopt) << bad;
}

}  // namespace
}  // namespace lockstep::rendezvous::dynamic
