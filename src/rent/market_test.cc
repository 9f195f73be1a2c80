#include "rent/market.h"

#include "rent/fake_world_testing.h"

#include <gtest/gtest.h>

namespace lockstep::rent {
namespace {

using MarketTest = testing::FakeWorld;

TEST_F(MarketTest, SpotIsAskedForOnlyWhereThereIsSpot) {
  one->catalog.offers.resize(1);
  const auto market = ask_market(*world, {.gpu = {}, .spot = cloud::SpotWish::prefer}, true);
  ASSERT_TRUE(market);
  EXPECT_EQ(market->catalog.offers.size(), 1U);
  EXPECT_EQ(market->asked_ms, web->now);
  ASSERT_EQ(one->queries.size(), 1U);
  EXPECT_FALSE(one->queries[0].spot);
  EXPECT_TRUE(one->queries[0].fresh);
  one->set_spot(true);
  ASSERT_TRUE(ask_market(*world, {.gpu = {}, .spot = cloud::SpotWish::prefer}, false));
  EXPECT_EQ(one->queries.size(), 3U);
}

TEST_F(MarketTest, ProvidersWithoutCredentialsAreNamedUnlessTheUserNamedSome) {
  const auto market = ask_market(*world, {}, true);
  ASSERT_TRUE(market);
  ASSERT_EQ(market->catalog.silent.size(), 1U);
  EXPECT_EQ(market->catalog.silent[0].provider, "two");
  EXPECT_TRUE(market->catalog.silent[0].no_keys);
  const auto named = ask_market(*world, {.gpu = {}, .providers = {"one"}}, true);
  ASSERT_TRUE(named);
  EXPECT_TRUE(named->catalog.silent.empty());
}

}  // namespace
}  // namespace lockstep::rent
