// Tests the texts about offers: only offers that differ in their zone alone share a line.
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

// Returns the lines under the head, as "PLACE PRICE".
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
  EXPECT_NE(
      plan_text(plan, kThen).find("cost: 6.00 USD at most, whichever of these offers is rented; "),
      std::string::npos);
  terms.budget = 5 * cloud::kDollar;
  EXPECT_EQ(plan_of(choice, {}, terms, kThen).most, 5 * cloud::kDollar);
}

TEST(Plan, PromisesNoEndAndNoBoundWhereNothingEndsTheBill) {
  cloud::Choice choice{.candidates = {in_zone("r", "", 1), in_zone("s", "", 2)}, .left_out = {}};
  choice.candidates[0].offer.ending = cloud::Ending::with_guard;
  cloud::Terms terms;
  terms.lifetime_s = 3600;
  terms.budget = 5 * cloud::kDollar;
  const Plan open = plan_of(choice, {}, terms, kThen);
  const std::string text = plan_text(open, kThen);
  EXPECT_NE(text.find("ends: when you end it, with lockstep down; "), std::string::npos) << text;
  EXPECT_NE(text.find("cost: not bounded: 1.00 USD an hour until you end it\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("at the latest"), std::string::npos) << text;
  EXPECT_EQ(text.find("at most"), std::string::npos) << text;
  EXPECT_TRUE(plan_json(open)["ends_ms"].is_null() && plan_json(open)["most_micros"].is_null());
  EXPECT_FALSE(open.capped);
  // Only a later offer needs a guard: the first offer has an end, but the cost has no bound.
  std::swap(choice.candidates[0], choice.candidates[1]);
  const std::string later = plan_text(plan_of(choice, {}, terms, kThen), kThen);
  EXPECT_NE(later.find(" at the latest, in 1 h"), std::string::npos) << later;
  EXPECT_NE(later.find("cost: not bounded: "), std::string::npos) << later;
  terms.guard = "here";
  EXPECT_EQ(plan_of(choice, {}, terms, kThen).most, 2 * cloud::kDollar);
}

TEST(Plan, NamesTheProviderThatEndsItsMachinesItself) {
  cloud::Terms terms;
  terms.lifetime_s = 3600;
  Plan plan = plan_of({.candidates = {in_zone("r", "", 1)}, .left_out = {}}, {}, terms, kThen);
  EXPECT_EQ(plan_text(plan, kThen).find("keep: "), std::string::npos);
  plan.fixed_by = "RunPod";
  EXPECT_NE(plan_text(plan, kThen).find("keep: cannot extend this end: RunPod itself terminates "),
            std::string::npos);
}

TEST(OffersTable, APriceThatIsNotKnownIsNoPriceOfItsDiskAndAddress) {
  cloud::Choice choice;
  choice.left_out.push_back({.offer = in_zone("r", "ra", 0).offer, .why = "no price is known"});
  choice.left_out[0].offer.price = {};
  choice.left_out[0].offer.address_per_hour = 5'000;
  choice.left_out[0].per_hour = 13'200;
  EXPECT_EQ(places(choice), (Places{"ra unkno"}));  // the helper cuts the column
  EXPECT_EQ(offers_table({}, choice, {}, kThen).find("1970"), std::string::npos);
  const auto row = offers_json({}, choice, kThen)["offers"][0];
  for (const char* name : {"usd_per_hour", "price_age_s", "price_micros_per_hour"})
    EXPECT_TRUE(row[name].is_null()) << name;
  EXPECT_NE(nothing_found({}, {}, choice).message.find("at an unknown price"), std::string::npos);
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

TEST(SweepLines, DeniedRegionsShareALine) {
  cloud::Reconciled swept;
  for (const char* region : {"a-1", "b-1", "c-1", "d-1", "e-1"})
    swept.denied.push_back({.provider = "aws", .region = region, .why = "no", .denied = true});
  swept.unheard.push_back({.provider = "gcp", .why = "silent"});
  EXPECT_EQ(sweep_lines(swept, kThen),
            (std::vector<std::string>{
                "machines there are not known: gcp: silent",
                "aws: a policy of your organization denies 5 regions (a-1, b-1, c-1 and 2 more); "
                "not asked again for a day, unless --region names one"}));
}

TEST(SweepLines, MachinesOfColleaguesShareALine) {
  cloud::Reconciled swept;
  for (int i = 0; i < 60; ++i) {
    cloud::Machine machine{.id = "i-" + std::to_string(i), .region = "r"};
    machine.owner = i % 2 == 0 ? "ann" : "bob";
    swept.foreign.push_back({.provider = "aws", .machine = machine});
  }
  EXPECT_EQ(sweep_lines(swept, kThen),
            std::vector<std::string>{
                "aws: 60 machines belong to 2 other installations of lockstep: left alone"});
}

}  // namespace
}  // namespace lockstep::cli
