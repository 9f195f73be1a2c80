// What people read of offers: zones that are alike share a line, and nothing else changes.
#include "cli/on_demand_words.h"

#include "base/text.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

constexpr std::int64_t kThen = 1'800'000'000'000;

cloud::Candidate in_zone(const std::string& region, const std::string& zone, double usd) {
  cloud::Candidate one;
  one.offer = {.provider = "p", .region = region, .zone = zone, .type = "t1", .gpu = "L4"};
  one.offer.gpus = 1;
  one.offer.price = {.per_hour = static_cast<cloud::Micros>(usd * 1e6),
                     .source = cloud::Price::Source::live};
  one.per_hour = one.offer.price.per_hour;
  return one;
}

// The lines under the head, as "PLACE PRICE".
std::vector<std::string> places(const cloud::Choice& choice) {
  const std::string table = offers_table({}, choice, {}, kThen);
  const std::size_t type = table.find("TYPE");
  const std::size_t place = table.find("PLACE");
  const std::size_t price = table.find("USD/H");
  std::vector<std::string> found;
  for (const std::string& line : split(table, '\n'))
    if (line.starts_with("p "))
      found.push_back(std::string(strip(line.substr(place, type - place))) + " " +
                      std::string(strip(line.substr(price, 5))));
  return found;
}

using Places = std::vector<std::string>;

TEST(OffersTable, ZonesThatAreAlikeShareALineAtTheFirstOnesPlace) {
  EXPECT_EQ(places({.candidates = {in_zone("us-east-1", "us-east-1b", 1), in_zone("eu", "", 1),
                                   in_zone("us-east-1", "us-east-1c", 1),
                                   in_zone("us-east-1", "us-east-1a", 2)},
                    .left_out = {}}),
            (Places{"us-east-1b c 1.00", "eu 1.00", "us-east-1a 2.00"}));
  EXPECT_EQ(places({.candidates = {in_zone("us-central1", "us-central1-a", 1),
                                   in_zone("us-central1", "us-central1-f", 1)},
                    .left_out = {}}),
            (Places{"us-central1-a f 1.00"}));
}

TEST(OffersTable, ManyZonesAndThoseOfLongNamesAreCounted) {
  cloud::Choice many;
  for (const char letter : std::string("abcdef"))
    many.candidates.push_back(in_zone("us-east-1", std::string("us-east-1") + letter, 1));
  EXPECT_EQ(places(many), (Places{"us-east-1, 6 zones 1.00"}));
  EXPECT_EQ(places({.candidates = {in_zone("us-east-1", "us-east-1a", 1),
                                   in_zone("us-east-1", "us-east-1-bos-1a", 1)},
                    .left_out = {}}),
            (Places{"us-east-1, 2 zones 1.00"}));
}

TEST(Plan, CostsAtMostWhatTheDearestOfThoseThatAreShownDoes) {
  cloud::Choice choice;
  for (const double usd : {1.0, 3.0, 2.0, 9.0})
    choice.candidates.push_back(in_zone("r", "r" + std::to_string(usd), usd));
  cloud::Terms terms;
  terms.lifetime_s = 2LL * 3600;
  const Plan plan = plan_of(choice, {}, terms, kThen);
  EXPECT_EQ(plan.most, 6 * cloud::kDollar);
  EXPECT_NE(plan_text(plan, kThen).find("cost: 6.00 USD at most, whichever of these is had; "),
            std::string::npos);
  terms.budget = 5 * cloud::kDollar;
  EXPECT_EQ(plan_of(choice, {}, terms, kThen).most, 5 * cloud::kDollar);
}

TEST(OffersTable, WhatDiffersInMoreThanTheZoneStaysApart) {
  cloud::Choice choice{.candidates = {in_zone("r", "ra", 1), in_zone("r", "rb", 1)},
                       .left_out = {}};
  choice.candidates[1].doubt = "refused lately";
  choice.left_out.push_back({.offer = in_zone("r", "rc", 1).offer,
                             .per_hour = choice.candidates[0].per_hour,
                             .why = "over --max-price"});
  EXPECT_EQ(places(choice), (Places{"ra 1.00", "rb 1.00", "rc 1.00"}));
  EXPECT_EQ(offers_json({}, choice, kThen)["offers"].size(), 3U);
}

}  // namespace
}  // namespace lockstep::cli
