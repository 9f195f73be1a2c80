// Tests the choice: each known trap as a case, and generated catalogs against a slow but obvious
// reference.
#include "cloud/choice.h"

#include "cloud/machine_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lockstep::cloud {
namespace {

constexpr std::int64_t kNow = 1'800'000'000'000;

Offer priced(const std::string& type, double usd) {
  Offer offer{.provider = "p", .region = "r1", .zone = "r1-a", .type = type, .gpu = "L4"};
  offer.gpus = 1;
  offer.price = {.per_hour = static_cast<Micros>(usd * 1e6), .source = Price::Source::live};
  return offer;
}

Wish wish_for(const std::string& gpu) {
  Wish wish;
  wish.gpu = *parse_gpu_wish(gpu);
  return wish;
}

std::vector<std::string> chosen(const std::vector<Offer>& offers, const Wish& wish,
                                const std::vector<Block>& learned = {}) {
  std::vector<std::string> types;
  for (const Candidate& one : choose(offers, wish, learned, kNow).candidates)
    types.push_back(one.offer.type);
  return types;
}

std::string why_left_out(const Offer& offer, const Wish& wish) {
  const Choice choice = choose({offer}, wish, {}, kNow);
  return choice.left_out.empty() ? "" : choice.left_out.front().why;
}

using Types = std::vector<std::string>;

// Returns a provider's built-in offers, on demand and on spot.
std::vector<Offer> built_in(const std::string& provider) {
  std::vector<Offer> offers;
  for (const MachineType& type : machine_table(provider)->types)
    for (const bool spot : {false, true}) {
      Offer offer = priced(type.type, 0);
      offer.provider = provider;
      offer.gpu = type.gpu;
      offer.gpus = type.gpus;
      offer.spot = spot;
      offer.price = {.per_hour = (spot ? type.spot : type.on_demand).value_or(0)};
      if (!spot) offer.not_for_sale = type.why;
      offers.push_back(offer);
    }
  return offers;
}

TEST(Choice, WhatAwsHasOfSingleGpus) {
  const auto aws = built_in("aws");
  EXPECT_EQ(chosen(aws, wish_for("V100:1")), Types{});
  EXPECT_EQ(chosen(aws, wish_for("A100:1")), Types{});
  EXPECT_EQ(chosen(aws, wish_for("H100:1")), Types{"p5.4xlarge"});
  EXPECT_EQ(chosen(aws, wish_for("V100:8")), Types{"p3dn.24xlarge"});
  EXPECT_EQ(chosen(aws, wish_for("A100:8")), (Types{"p4d.24xlarge", "p4de.24xlarge"}));
  EXPECT_EQ(chosen(aws, wish_for("RTXPRO6000:2")), Types{"g7e.12xlarge"});
  EXPECT_EQ(chosen(aws, wish_for("RTXPRO6000:4")), Types{"g7e.24xlarge"});
  EXPECT_EQ(chosen(aws, wish_for("RTXPRO4500:2")), Types{"g7.12xlarge"});
  EXPECT_EQ(chosen(aws, wish_for("RTXPRO4500:4")), Types{"g7.24xlarge"});
  const Wish v100 = wish_for("V100:1");
  const Catalog catalog{.offers = aws, .silent = {}};
  const Error error = nothing_found(catalog, v100, choose(aws, v100, {}, kNow));
  EXPECT_EQ(error.message, "nobody offers V100:1");
  EXPECT_EQ(error.hint, "near it: aws has V100-32GB:8 (p3dn.24xlarge) from 31.21 an hour");
}

TEST(Choice, GoogleSellsSomeTypesOnSpotOnly) {
  const auto gcp = built_in("gcp");
  EXPECT_EQ(chosen(gcp, wish_for("H100:1")), Types{});
  Wish spot = wish_for("H100:1");
  spot.spot = SpotWish::only;
  EXPECT_EQ(chosen(gcp, spot), Types{"a3-highgpu-1g"});
  EXPECT_EQ(chosen(gcp, wish_for("A100-40GB:1")), Types{"a2-highgpu-1g"});
}

TEST(Choice, AFamilyMeansEverySize) {
  Offer small = priced("small", 1);
  small.gpu = "A100-40GB";
  Offer large = priced("large", 2);
  large.gpu = "A100-80GB";
  EXPECT_EQ(chosen({large, small}, wish_for("A100")), (Types{"small", "large"}));
  EXPECT_EQ(chosen({large, small}, wish_for("A100-80GB")), Types{"large"});
  EXPECT_EQ(chosen({large, small}, wish_for("A100-40GB:1")), Types{"small"});
}

TEST(Choice, TheCountIsExactUnlessMoreIsWanted) {
  Offer eight = priced("eight", 8);
  eight.gpus = 8;
  Wish wish = wish_for("L4:4");
  EXPECT_EQ(chosen({priced("one", 1), eight}, wish), Types{});
  wish.gpu.at_least = true;
  EXPECT_EQ(chosen({priced("one", 1), eight}, wish), Types{"eight"});
}

TEST(Choice, WhatHasNoPriceIsNotChosenAndNeverTheCheapest) {
  const Wish wish = wish_for("L4");
  EXPECT_EQ(why_left_out(priced("empty", 0), wish), "no price is known");
  EXPECT_EQ(why_left_out(priced("nobody", 700), wish), "no price is known");
  Wish capped = wish;
  capped.max_price = kDollar;
  const std::vector<Offer> offers = {priced("empty", 0), priced("dear", 3), priced("nobody", 700),
                                     priced("cheap", 2)};
  const Choice choice = choose(offers, capped, {}, kNow);
  EXPECT_EQ(nothing_found({.offers = offers, .silent = {}}, capped, choice).message,
            "no offer of L4:1 can be taken: the cheapest, p cheap in r1-a at 2.00 an hour, is left "
            "out: over --max-price 1.00");
}

TEST(Choice, FloorPricesComeLastAndWhatIsNotForSaleNever) {
  Offer floor = priced("floor", 0.1);
  floor.floor_price = true;
  Offer reserved = priced("reserved", 0.2);
  reserved.not_for_sale = "capacity block only";
  Offer sold_out = priced("sold out", 0.3);
  sold_out.stock = Stock::none;
  EXPECT_EQ(chosen({floor, reserved, sold_out, priced("real", 9)}, wish_for("L4")),
            (Types{"real", "sold out", "floor"}));
  EXPECT_EQ(why_left_out(reserved, wish_for("L4")), "capacity block only");
}

TEST(Choice, ABuiltInPriceStandsBehindALiveOneWithinFivePercent) {
  Offer near = priced("built in", 0.96);
  near.price.source = Price::Source::built_in;
  Offer far = near;
  far.type = "far";
  far.price.per_hour = 940'000;
  EXPECT_EQ(chosen({near, priced("live", 1)}, wish_for("L4")), (Types{"live", "built in"}));
  EXPECT_EQ(chosen({far, priced("live", 1)}, wish_for("L4")), (Types{"far", "live"}));
}

TEST(Choice, TheRealPriceCounts) {
  Offer bare = priced("bare", 1.00);
  bare.disk_per_gb_month = 730'000;  // a tenth of a cent a GB and hour
  bare.address_per_hour = 5'000;
  Offer whole = priced("whole", 1.15);
  whole.disk_gb = 500;
  Wish wish = wish_for("L4");
  EXPECT_EQ(chosen({whole, bare}, wish), (Types{"bare", "whole"}));
  wish.disk_gb = 200;
  EXPECT_EQ(chosen({whole, bare}, wish), (Types{"whole", "bare"}));
  wish.nodes = 3;
  EXPECT_EQ(choose({bare}, wish, {}, kNow).candidates.front().per_hour, 3 * 1'205'000);
}

TEST(Choice, SpotThatIsNoBargainIsNotPreferred) {
  Offer demand = priced("demand", 1);
  Offer dear_spot = priced("spot", 1);
  dear_spot.type = "demand";
  dear_spot.spot = true;
  Offer other = priced("other", 2);
  other.spot = true;
  Wish wish = wish_for("L4");
  wish.spot = SpotWish::prefer;
  const Choice choice = choose({dear_spot, demand, other}, wish, {}, kNow);
  ASSERT_EQ(choice.candidates.size(), 3U);
  EXPECT_EQ(choice.candidates[0].offer.type, "other");
  EXPECT_FALSE(choice.candidates[1].offer.spot);
  EXPECT_TRUE(choice.candidates[2].offer.spot);
}

TEST(Choice, QuotaArchitectureNodesAndGuards) {
  Offer offer = priced("x", 1);
  offer.quota = Quota{.limit = 0, .needed = 96, .unit = "vCPUs", .link = {}};
  Wish two = wish_for("L4");
  two.nodes = 2;
  EXPECT_EQ(why_left_out(offer, two), "quota 0 vCPUs, ask for 192");
  offer.quota->limit = 192;
  EXPECT_EQ(why_left_out(offer, two), "");
  offer.most_nodes = 1;
  EXPECT_EQ(why_left_out(offer, two), "at most 1 node there");
  Offer arm = priced("arm", 1);
  arm.arch = "arm64";
  EXPECT_EQ(why_left_out(arm, wish_for("L4")), "arm64, and lockstep's binary for it is not here");
  Wish both = wish_for("L4");
  both.archs = {"x86_64", "arm64"};
  EXPECT_EQ(why_left_out(arm, both), "");
  Offer helpless = priced("helpless", 1);
  helpless.ending = Ending::with_guard;
  EXPECT_EQ(why_left_out(helpless, wish_for("L4")),
            "cannot end its own bill: --guard here, --guard HOST or --i-will-watch");
  both.guarded = true;
  EXPECT_EQ(why_left_out(helpless, both), "");
}

TEST(Choice, WhatWasLearnedComesLaterUntilItIsOld) {
  Block block{.provider = "p", .region = "r1", .zone = "r1-a", .until_ms = kNow + 1, .why = "full"};
  Offer other = priced("other", 2);
  other.zone = "r1-b";
  const std::vector<Offer> offers = {priced("blocked", 1), other};
  EXPECT_EQ(chosen(offers, wish_for("L4"), {block}), (Types{"other", "blocked"}));
  block.until_ms = kNow;
  EXPECT_EQ(chosen(offers, wish_for("L4"), {block}), (Types{"blocked", "other"}));
}

TEST(Choice, NearOffersAreThoseThatCanBeHad) {
  Offer dear = priced("eight", 9);
  dear.gpus = 8;
  Offer cheaper = dear;
  cheaper.zone = "r1-b";
  cheaper.price.per_hour = 8 * kDollar;
  Offer never = dear;
  never.type = "never";
  never.not_for_sale = "reserved";
  Offer floor = dear;
  floor.type = "floor";
  floor.floor_price = true;
  EXPECT_EQ(near_offers({dear, cheaper, never, floor}, wish_for("L4:2")),
            Types{"p has L4:8 (eight) from 8.00 an hour"});
}

// --- the reference

struct Ref {
  Offer offer;
  Micros total = 0;
  double rank = 0;  // standing
  Micros compared = 0;
};

// Returns whether a goes before b, criterion by criterion.
bool goes_before(const Ref& a, const Ref& b) {
  if (a.rank != b.rank) return a.rank < b.rank;
  if (a.compared != b.compared) return a.compared < b.compared;
  if (a.offer.stock != b.offer.stock)
    return static_cast<int>(a.offer.stock) < static_cast<int>(b.offer.stock);
  if (a.total != b.total) return a.total < b.total;
  for (const auto part : {&Offer::provider, &Offer::region, &Offer::zone, &Offer::type})
    if (a.offer.*part != b.offer.*part) return a.offer.*part < b.offer.*part;
  return !a.offer.spot && b.offer.spot;
}

bool has(const std::vector<std::string>& list, const std::string& word) {
  for (const std::string& one : list)
    if (one == word) return true;
  return false;
}

bool may_be_taken(const Offer& offer, const Wish& wish, Micros total) {
  const bool right_gpu = offer.gpu == "A100-40GB" || offer.gpu == "A100-80GB";
  const bool right_count = wish.gpu.at_least ? offer.gpus >= 2 : offer.gpus == 2;
  if (!right_gpu || !right_count) return false;
  if (!wish.providers.empty() && !has(wish.providers, offer.provider)) return false;
  if (!wish.regions.empty() && !has(wish.regions, offer.region)) return false;
  if (wish.spot == SpotWish::no && offer.spot) return false;
  if (wish.spot == SpotWish::only && !offer.spot) return false;
  if (!offer.not_for_sale.empty()) return false;
  if (offer.price.per_hour == 0 || offer.price.per_hour == 700'000'000) return false;
  if (!has(wish.archs, offer.arch)) return false;
  if (offer.most_nodes < wish.nodes) return false;
  if (offer.quota && offer.quota->needed * wish.nodes > offer.quota->limit) return false;
  if (wish.max_price && total > *wish.max_price) return false;
  return offer.ending == Ending::by_itself || wish.guarded;
}

double rank_of(const Offer& offer, const Wish& wish, const std::vector<Offer>& offers,
               const std::vector<Block>& learned) {
  if (offer.floor_price) return 100;
  for (const Block& block : learned) {
    const bool place = block.provider == offer.provider && block.region == offer.region;
    const bool zone = block.zone.empty() || block.zone == offer.zone;
    const bool type = block.type.empty() || block.type == offer.type;
    if (place && zone && type && block.spot == offer.spot && block.until_ms > kNow) return 50;
  }
  if (offer.stock == Stock::none) return 20;
  if (wish.spot != SpotWish::prefer) return 0;
  if (!offer.spot) return 10;
  for (const Offer& other : offers)
    if (!other.spot && other.provider == offer.provider && other.type == offer.type &&
        other.region == offer.region && other.not_for_sale.empty() && other.price.per_hour > 0 &&
        other.price.per_hour <= offer.price.per_hour)
      return 10;
  return 0;
}

std::vector<std::string> reference(const std::vector<Offer>& offers, const Wish& wish,
                                   const std::vector<Block>& learned) {
  std::vector<Ref> left;
  for (const Offer& offer : offers) {
    const int disk = std::max(wish.disk_gb, offer.min_disk_gb);
    const int paid = disk > offer.disk_gb ? disk - offer.disk_gb : 0;
    Micros disk_cost = offer.disk_per_gb_month * paid / 730;
    if (offer.disk_per_gb_month * paid % 730 != 0) ++disk_cost;
    const Micros each =
        offer.price.per_hour + disk_cost + offer.address_per_hour + offer.extra_per_hour;
    Ref ref{.offer = offer, .total = each * wish.nodes};
    if (!may_be_taken(offer, wish, ref.total)) continue;
    ref.rank = rank_of(offer, wish, offers, learned);
    ref.compared = ref.total;
    if (offer.price.source == Price::Source::built_in) ref.compared += ref.total / 20;
    left.push_back(ref);
  }
  std::vector<std::string> order;
  while (!left.empty()) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < left.size(); ++i)
      if (goes_before(left[i], left[best])) best = i;
    order.push_back(left[best].offer.note);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
  }
  return order;
}

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  int pick(int most) { return std::uniform_int_distribution<int>(0, most - 1)(random_); }
  bool maybe(int of) { return pick(of) == 0; }
  std::string word(const std::vector<std::string>& words) {
    return words[static_cast<std::size_t>(pick(static_cast<int>(words.size())))];
  }

  // Use few values of each kind, so that many offers are equal.
  Offer offer(int number) {
    Offer made = priced(word({"t1", "t2", "t3"}), 0);
    made.provider = word({"p1", "p2"});
    made.region = word({"r1", "r2"});
    made.zone = word({"", "a", "b"});
    made.gpu = word({"A100-40GB", "A100-80GB", "A100-40GB", "L4"});
    made.gpus = maybe(5) ? 8 : 2;
    made.arch = maybe(8) ? "arm64" : "x86_64";
    made.spot = maybe(2);
    made.price.per_hour = maybe(10) ? (maybe(2) ? 0 : 700'000'000) : 950'000 + pick(6) * 10'000;
    made.price.source = static_cast<Price::Source>(pick(3));
    made.disk_per_gb_month = pick(3) * 100'000LL;
    made.min_disk_gb = pick(2) * 75;
    made.disk_gb = pick(2) * 100;
    made.address_per_hour = pick(2) * 5'000LL;
    made.extra_per_hour = pick(2) * 10'000LL;
    made.most_nodes = maybe(6) ? 1 : 100;
    made.stock = static_cast<Stock>(pick(3));
    if (maybe(3))
      made.quota = Quota{.limit = pick(4) * 96LL, .needed = 96, .unit = "vCPUs", .link = {}};
    made.ending = maybe(5) ? Ending::with_guard : Ending::by_itself;
    made.not_for_sale = maybe(12) ? "reserved" : "";
    made.floor_price = maybe(12);
    made.note = std::to_string(number);
    return made;
  }
  Wish wish() {
    Wish made = wish_for("A100:2");
    made.gpu.at_least = maybe(3);
    made.nodes = 1 + pick(3);
    made.spot = static_cast<SpotWish>(pick(3));
    if (maybe(4)) made.providers = {"p1"};
    if (maybe(4)) made.regions = {"r2", "r3"};
    if (maybe(3)) made.max_price = 1'000'000 * (1 + pick(3));
    made.disk_gb = pick(3) * 100;
    made.guarded = maybe(2);
    if (maybe(3)) made.archs = {"x86_64", "arm64"};
    return made;
  }
  Block block() {
    return {.kind = Block::Kind::capacity,
            .provider = word({"p1", "p2"}),
            .region = word({"r1", "r2"}),
            .zone = word({"", "a", "b"}),
            .type = word({"", "t1", "t2"}),
            .spot = maybe(2),
            .until_ms = kNow + pick(3) - 1,
            .why = "learned"};
  }

 private:
  std::mt19937 random_;
};

TEST(Choice, AThousandCatalogsAreChosenFromAsTheReferenceDoes) {
  std::size_t candidates = 0;
  for (unsigned seed = 0; seed < 1'000; ++seed) {
    Generator generate(seed);
    std::vector<Offer> offers;
    for (int i = generate.pick(40); i >= 0; --i)
      offers.push_back(generate.offer(i));
    const Wish wish = generate.wish();
    std::vector<Block> learned;
    for (int i = generate.pick(4); i > 0; --i)
      learned.push_back(generate.block());
    std::vector<std::string> order;
    const Choice choice = choose(offers, wish, learned, kNow);
    for (const Candidate& one : choice.candidates)
      order.push_back(one.offer.note);
    ASSERT_EQ(order, reference(offers, wish, learned)) << "seed " << seed;
    candidates += order.size();
  }
  EXPECT_GT(candidates, 2'000U);
}

}  // namespace
}  // namespace lockstep::cloud
