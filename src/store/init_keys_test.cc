#include "store/init_keys.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace lockstep::store {
namespace {

std::string show(std::string_view key) {
  const auto parsed = parse_init_key(key);
  if (!parsed) return "none";
  constexpr std::string_view kKinds[] = {"host", "address", "id", "number", "arrived", "barrier"};
  return fmt::format("{} {} {} {}", kKinds[static_cast<std::size_t>(parsed->kind)], parsed->group,
                     parsed->name, parsed->creator);
}

// Captured from workers of PyTorch 2.6 and 2.14.
TEST(InitKeys, GlooOfTwo) {
  EXPECT_EQ(show("/default_pg/0//cpu//0/3"), "address /default_pg/0 0 3");
  EXPECT_EQ(show("/default_pg/0//1//cpu//0/2"), "address /default_pg/0/1 1 2");
  EXPECT_EQ(show("default_pg/0//2f9_4//cpu//1/12"), "address default_pg/0/2f9_4 2f9_4 12");
}

// Captured from workers of PyTorch 1.13.
TEST(InitKeys, GlooOfOneThirteen) {
  const std::string head = "//worker/attempt_0/default_pg";
  EXPECT_EQ(show(head + "/0/0/rank_3"), "host " + head + "/0 0 3");
  EXPECT_EQ(show(head + "/0/0/3"), "address " + head + "/0 0 3");
  EXPECT_EQ(show(head + "/1/0/rank_2"), "host " + head + "/1 1 2");
  EXPECT_EQ(show(head + "/1/0/2"), "address " + head + "/1 1 2");
  EXPECT_EQ(show(head + "/2/SEQ_NUM_STORE_KEY"), "number " + head + "/2 2 0");
  EXPECT_EQ(show(head + "/store_based_barrier_key:2"), "arrived " + head + "/barrier/2 2 -1");
  EXPECT_EQ(show(head + "/store_based_barrier_key:2:last_worker"),
            "barrier " + head + "/barrier/2 2 -1");
}

TEST(InitKeys, Nccl) {
  EXPECT_EQ(show("/default_pg/0//cuda//0"), "id /default_pg/0 0 0");
  EXPECT_EQ(show("/default_pg/0//4//cuda//0"), "id /default_pg/0/4 4 0");
  EXPECT_EQ(show("/default_pg/0//cuda//2:3"), "id /default_pg/0 0 2");
  EXPECT_EQ(show("default_pg/0/0"), "id default_pg/0 0 0");
  EXPECT_EQ(show("/default_pg/0//cuda//world/nccl_storekey_0").substr(0, 3), "id ");
  EXPECT_EQ(parse_init_key("/default_pg/0//cuda//nccl_storekey_0_1")->creator, -1);
}

TEST(InitKeys, OtherKeys) {
  for (const std::string_view key :
       {"", "/", "default_pg/", "/default_pg/0", "/default_pg//////", "my_default_pg/0/0/1",
        "/default_pg/0//cpu//0/", "/default_pg/0//cpu//0/-1", "/default_pg/0//cpu//0/3x",
        "/default_pg/0//cpu//0/99999999999", "init/", "torchelastic/agent/0", "default_pg/rank_1"})
    EXPECT_EQ(show(key), "none") << key;
  std::string deep = "default_pg";
  for (int i = 0; i < 1000; ++i)
    deep += "/0";
  EXPECT_EQ(show(deep), "none");
}

TEST(InitKeys, InterestingOnesFollowTheWaits) {
  WitnessSession session;
  session.waits.push_back({.keys = {"/default_pg/0//1//cpu//0/1", "\xff"}});
  const InterestingKeys keys({&session, 1});
  EXPECT_TRUE(keys.has("/default_pg/0//1//cpu//0/0"));
  EXPECT_TRUE(keys.has("/default_pg/0//cpu//0/7"));
  EXPECT_FALSE(keys.has("/default_pg/0//2//cpu//0/0"));
  EXPECT_TRUE(keys.has("exception_dump"));
  EXPECT_TRUE(keys.has("/default_pg/0//cuda//remote_error:0"));
  EXPECT_TRUE(keys.has("debug_server/rank3"));
  EXPECT_FALSE(keys.has("user/key"));
}

}  // namespace
}  // namespace lockstep::store
