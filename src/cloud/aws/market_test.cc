#include "cloud/aws/market.h"

#include "cloud/machine_table.h"

#include <gtest/gtest.h>

namespace lockstep::cloud::aws {
namespace {

constexpr std::int64_t kHeard = 1'800'000'000'000;

Asked<KeptRows> heard(WordRows rows, Price::Source source = Price::Source::live) {
  return KeptRows{.rows = std::move(rows), .source = source, .as_of_ms = kHeard};
}

Asked<KeptRows> unheard(const char* why) {
  return tl::make_unexpected(refused_here("No", why, ""));
}

RegionNews news_of(const std::string& region) {
  return {.region = region,
          .zones = heard({{region + "a", "id-1"}, {region + "b", "id-2"}}),
          .types = heard({{"g6.xlarge", region + "a"},
                          {"g6.xlarge", region + "b"},
                          {"p5.48xlarge", region + "b"},
                          {"p5e.48xlarge", region + "b"}})};
}

OfferQuery query_for(const char* gpu, bool spot = false) {
  return {.gpu = *parse_gpu_wish(gpu), .spot = spot};
}

TEST(AwsMarket, AnOfferIsAZoneThatSellsTheType) {
  PriceNews prices{{"g6.xlarge", heard({{"eu-west-1", "900000"}, {"us-east-1", "804800"}})}};
  const auto offers = region_offers(news_of("eu-west-1"), prices, query_for("L4:1"));
  ASSERT_EQ(offers.size(), 2U);
  EXPECT_EQ(offers[1].zone, "eu-west-1b");
  EXPECT_EQ(offers[1].zone_id, "id-2");
  EXPECT_EQ(offers[1].price.per_hour, 900'000);
  EXPECT_EQ(offers[1].price.source, Price::Source::live);
  EXPECT_EQ(offers[1].price.as_of_ms, kHeard);
  EXPECT_EQ(offers[1].gpu_memory_gb, 24);
  EXPECT_FALSE(offers[1].quota);
  // 100 GB at 0.08 a month, and an address.
  EXPECT_EQ(offers[1].per_machine_hour(100), 900'000 + 10'959 + 5'000);
  EXPECT_EQ(region_offers(news_of("eu-west-1"), prices, query_for("H100:8")).size(), 1U);
  EXPECT_TRUE(region_offers(news_of("eu-west-1"), prices, query_for("A100:8")).empty());
}

TEST(AwsMarket, TheBuiltInPriceIsOfOneRegionOnly) {
  PriceNews prices{{"g6.xlarge", unheard("no right")}};
  const auto here = region_offers(news_of("us-east-1"), prices, query_for("L4:1"));
  ASSERT_EQ(here.size(), 2U);
  EXPECT_EQ(here[0].price.source, Price::Source::built_in);
  EXPECT_EQ(here[0].price.as_of_ms, machine_table("aws")->date_ms);
  EXPECT_TRUE(here[0].not_for_sale.empty());
  const auto there = region_offers(news_of("eu-west-1"), prices, query_for("L4:1"));
  ASSERT_EQ(there.size(), 2U);
  EXPECT_FALSE(there[0].not_for_sale.empty());
}

TEST(AwsMarket, WhatHasNoPriceOnDemandIsNotForSale) {
  PriceNews prices{{"p5e.48xlarge", heard({})}};
  const auto offers = region_offers(news_of("us-east-1"), prices, query_for("H200:8"));
  ASSERT_EQ(offers.size(), 1U);
  EXPECT_EQ(offers[0].not_for_sale, "only in capacity blocks");
  // AWS has answered with prices, but without one for this region.
  const PriceNews none{{"g6.xlarge", heard({{"eu-west-1", "900000"}})}};
  const auto others = region_offers(news_of("us-east-1"), none, query_for("L4:1"));
  ASSERT_EQ(others.size(), 2U);
  EXPECT_EQ(others[0].not_for_sale, "not sold on demand in us-east-1");
}

TEST(AwsMarket, SpotIsOfTheZone) {
  PriceNews prices{{"g6.xlarge", heard({{"us-east-1", "804800"}})}};
  RegionNews news = news_of("us-east-1");
  news.spot = heard({{"g6.xlarge", "us-east-1b", "400000"}}, Price::Source::cached);
  const auto offers = region_offers(news, prices, query_for("L4:1", true));
  ASSERT_EQ(offers.size(), 1U);
  EXPECT_TRUE(offers[0].spot);
  EXPECT_EQ(offers[0].price.per_hour, 400'000);
  EXPECT_EQ(offers[0].price.source, Price::Source::cached);
  EXPECT_TRUE(offers[0].note.empty());
  EXPECT_FALSE(offers[0].floor_price);
}

TEST(AwsMarket, AFloorPriceAndNoDiscountAreSaid) {
  PriceNews prices{{"g6.xlarge", heard({{"us-east-1", "804800"}})}};
  RegionNews news = news_of("us-east-1");
  news.spot = heard({{"g6.xlarge", "us-east-1a", "80480"}, {"g6.xlarge", "us-east-1b", "804800"}});
  const auto offers = region_offers(news, prices, query_for("L4:1", true));
  ASSERT_EQ(offers.size(), 2U);
  EXPECT_TRUE(offers[0].floor_price);
  EXPECT_FALSE(offers[1].floor_price);
  EXPECT_NE(offers[1].note.find("no cheaper"), std::string::npos);
}

TEST(AwsMarket, AQuotaIsOfItsFamily) {
  RegionNews news = news_of("us-east-1");
  news.quotas.emplace("L-417A185B", heard({{"0"}}));
  const auto offers = region_offers(news, {}, query_for("H100:8"));
  ASSERT_EQ(offers.size(), 1U);
  ASSERT_TRUE(offers[0].quota);
  EXPECT_EQ(offers[0].quota->limit, 0);
  EXPECT_EQ(offers[0].quota->needed, 192);
  EXPECT_FALSE(region_offers(news, {}, query_for("L4:1"))[0].quota);
}

TEST(AwsMarket, ARegionOfWhichTooLittleIsKnownIsSilent) {
  RegionNews news = news_of("us-east-1");
  EXPECT_EQ(missing_news(news), nullptr);
  news.spot = unheard("no spot prices");
  EXPECT_EQ(missing_news(news)->message, "no spot prices");
  EXPECT_TRUE(region_offers(news, {}, query_for("L4:1", true)).empty());
  RegionNews silent = news_of("us-east-1");
  silent.zones = unheard("no zones");
  EXPECT_EQ(missing_news(silent)->message, "no zones");
}

}  // namespace
}  // namespace lockstep::cloud::aws
