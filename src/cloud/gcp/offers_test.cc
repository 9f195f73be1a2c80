#include "cloud/gcp/offers.h"

#include "cloud/gcp/gcp_testing.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace lockstep::cloud::gcp {
namespace {

const char* const kTypes = R"({"items":{
 "zones/us-central1-a":{"machineTypes":[
  {"name":"g2-standard-4","guestCpus":4,"memoryMb":16384,"accelerators":[{"guestAcceleratorType":"nvidia-l4","guestAcceleratorCount":1}]},
  {"name":"a3-highgpu-1g","guestCpus":26,"memoryMb":239616,"accelerators":[{"guestAcceleratorType":"nvidia-h100-80gb","guestAcceleratorCount":1}]},
  {"name":"g2-standard-8","guestCpus":8,"memoryMb":32768,"deprecated":{"state":"OBSOLETE"},"accelerators":[{"guestAcceleratorType":"nvidia-l4","guestAcceleratorCount":1}]},
  {"name":"n1-standard-4","guestCpus":4,"memoryMb":15360},
  {"name":"n1-standard-8","guestCpus":8,"memoryMb":30720},
  {"name":"n1-standard-16","guestCpus":16,"memoryMb":61440},
  {"name":"n1-standard-64","guestCpus":64,"memoryMb":245760}]},
 "zones/us-east1-b":{"warning":{"code":"NO_RESULTS_ON_PAGE"}},
 "regions/us-central1":{"machineTypes":[{"name":"g2-standard-4"}]}},
 "unreachables":["projects/p/zones/europe-west4-a"]})";

Places sample_places() {
  Places places;
  places.add_types(codec::parse_json(kTypes));
  places.add_accelerators(codec::parse_json(
      R"({"items":{"zones/us-central1-a":{"acceleratorTypes":[
       {"name":"nvidia-tesla-v100","maximumCardsPerInstance":8},{"name":"nvidia-l4","maximumCardsPerInstance":8},
       {"name":"nvidia-tesla-t4-vws","maximumCardsPerInstance":4}]}}})"));
  places.add_regions(codec::parse_json(
      R"({"items":[{"name":"us-central1","quotas":[{"metric":"NVIDIA_L4_GPUS","limit":8.0},
       {"metric":"PREEMPTIBLE_NVIDIA_L4_GPUS","limit":2.0},{"metric":"CPUS","limit":24.0}]},{"name":"us-east1"}]})"));
  places.add_project(
      codec::parse_json(R"({"quotas":[{"metric":"GPUS_ALL_REGIONS","limit":4.0}]})"));
  return places;
}

OfferQuery wish(const char* gpu, bool spot = false) {
  OfferQuery query;
  if (*gpu != 0) query.gpu = parse_gpu_wish(gpu).value();
  query.spot = spot;
  return query;
}

PriceList live_prices() {
  return {UnitPrices::parse("core:g2 us-central1 od=25000000\nram:g2 us-central1 od=3000000\n"
                            "gpu:nvidia-l4 us-central1 od=560000000\n"
                            "core:n1 us-central1 od=30000000\nram:n1 us-central1 od=4000000\n"
                            "gpu:nvidia-tesla-v100 us-central1 od=2480000000\n"
                            "pd-balanced us-central1 od=110000000\n"),
          Price::Source::live, 5, ""};
}

TEST(GcpOffers, AddUpWhatIsWhereAndWhatItCosts) {
  const Catalog catalog = make_offers(sample_places(), live_prices(), wish("L4:1"), "proj");
  ASSERT_EQ(catalog.offers.size(), 1U);
  const Offer& offer = catalog.offers[0];
  EXPECT_EQ(offer.type, "g2-standard-4");
  EXPECT_EQ(offer.zone, "us-central1-a");
  EXPECT_EQ(offer.region, "us-central1");
  EXPECT_EQ(offer.gpu_memory_gb, 24);
  EXPECT_EQ(offer.memory_gb, 16);
  EXPECT_EQ(offer.price.per_hour, 4 * 25'000 + 16 * 3'000 + 560'000);
  EXPECT_EQ(offer.price.source, Price::Source::live);
  EXPECT_EQ(offer.disk_per_gb_month, 110'000);
  EXPECT_EQ(offer.address_per_hour, 5'000);
  ASSERT_TRUE(offer.quota);
  EXPECT_EQ(offer.quota->limit, 4) << "that of all regions is smaller";
  EXPECT_EQ(offer.not_for_sale, "");
  ASSERT_EQ(catalog.silent.size(), 1U);
  EXPECT_EQ(catalog.silent[0].region, "europe-west4-a");
}

TEST(GcpOffers, PutAcceleratorsIntoTheSmallestN1ThatFeedsThem) {
  std::vector<std::string> types;
  for (const Offer& offer : make_offers(sample_places(), live_prices(), wish(""), "proj").offers)
    if (offer.gpu == "V100-16GB")
      types.push_back(fmt::format("{}:{} {}", offer.gpus, offer.type, offer.vcpus));
  EXPECT_EQ(types, (std::vector<std::string>{"1:n1-standard-8+nvidia-tesla-v100 8",
                                             "2:n1-standard-16+nvidia-tesla-v100 16",
                                             "8:n1-standard-64+nvidia-tesla-v100 64"}))
      << "four would need 32 vCPUs, and there is no such type";
}

TEST(GcpOffers, NeverSellWhatIsNotForSale) {
  const PriceList none{UnitPrices{}, Price::Source::built_in, 0, "no right"};
  // The table has a spot price for H100:1, but no on-demand price.
  EXPECT_TRUE(make_offers(sample_places(), none, wish("H100:1"), "proj").offers.empty());
  const Catalog spot = make_offers(sample_places(), none, wish("H100:1", true), "proj");
  ASSERT_EQ(spot.offers.size(), 1U);
  EXPECT_EQ(spot.offers[0].not_for_sale, "");
  PriceList priced = live_prices();
  priced.units = UnitPrices::parse(
      "core:a3 us-central1 od=1000000\nram:a3 us-central1 od=1000000\n"
      "ssd us-central1 od=80000000\ngpu:nvidia-h100-80gb us-central1 od=1000000\n");
  const Catalog demand = make_offers(sample_places(), priced, wish("H100:1"), "proj");
  ASSERT_EQ(demand.offers.size(), 1U);
  EXPECT_NE(demand.offers[0].not_for_sale, "");
  EXPECT_EQ(demand.offers[0].extra_per_hour, 82'192) << "750 GB of local disk";
}

TEST(GcpOffers, FallBackToTheTableAndSaySo) {
  const PriceList none{UnitPrices{}, Price::Source::built_in, 0, "no right"};
  const Catalog catalog = make_offers(sample_places(), none, wish("L4:1"), "proj");
  ASSERT_EQ(catalog.offers.size(), 1U);
  EXPECT_EQ(catalog.offers[0].price.source, Price::Source::built_in);
  EXPECT_EQ(catalog.offers[0].price.per_hour, 707'000);
  EXPECT_GT(catalog.offers[0].price.as_of_ms, 0);
  // The list has the GPU elsewhere, so this region has no spot price.
  EXPECT_TRUE(
      make_offers(sample_places(), live_prices(), wish("L4:1", true), "proj").offers.empty());
}

TEST(GcpOffers, SayWhichRegionsThereAreNot) {
  OfferQuery query = wish("L4:1");
  query.regions = {"us-east1", "mars-north1"};
  const Catalog catalog = make_offers(sample_places(), live_prices(), query, "proj");
  EXPECT_TRUE(catalog.offers.empty());
  EXPECT_EQ(catalog.silent.back().region, "mars-north1");
}

TEST(GcpPlaces, AreKeptAsText) {
  const Places places = sample_places();
  const Places again = Places::parse(places.text() + "T too few\nrubbish\n\n");
  EXPECT_EQ(again.text(), places.text());
  EXPECT_EQ(again.quota("nvidia-l4", "us-central1", true), 2);
  EXPECT_EQ(again.quota("nvidia-tesla-v100", "us-central1", false), std::nullopt);
}

TEST(GcpPlaces, WithoutAnyQuotaHaveNone) {
  Places places = sample_places();
  places.quotas["* GPUS_ALL_REGIONS"] = 0;
  EXPECT_EQ(places.quota("nvidia-tesla-v100", "us-central1", false), 0);
  EXPECT_EQ(places.quota("nvidia-l4", "us-central1", false), 0);
}

}  // namespace
}  // namespace lockstep::cloud::gcp
