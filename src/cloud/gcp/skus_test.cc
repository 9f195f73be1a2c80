#include "cloud/gcp/skus.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace lockstep::cloud::gcp {
namespace {

struct Row {
  const char* text;
  const char* usage;
  std::int64_t nanos;
  const char* unit = "h";
  const char* region = "us-central1";
};

UnitPrices prices_of(const std::vector<Row>& rows) {
  std::string page;
  for (const Row& row : rows)
    page += fmt::format(
        R"({}{{"description":"{}","category":{{"usageType":"{}"}},"serviceRegions":["{}"],"pricingInfo":[)"
        R"({{"pricingExpression":{{"usageUnit":"{}","tieredRates":[{{"unitPrice":{{"currencyCode":"USD","units":"{}","nanos":{}}}}}]}}}}]}})",
        page.empty() ? "" : ",", row.text, row.usage, row.region, row.unit,
        row.nanos / 1'000'000'000, row.nanos % 1'000'000'000);
  UnitPrices prices;
  prices.add_page(codec::parse_json(R"({"skus":[)" + page + "]}"));
  return prices;
}

std::string part(const char* text) {
  bool spot = false;
  const std::string found = part_of_description(text, spot);
  return spot ? found + " spot" : found;
}

TEST(Skus, AreKnownByTheirWords) {
  EXPECT_EQ(part("N1 Predefined Instance Core running in Americas"), "core:n1");
  EXPECT_EQ(part("Spot Preemptible N1 Predefined Instance Ram running in Americas"), "ram:n1 spot");
  EXPECT_EQ(part("A3Plus Instance Core running in Iowa"), "core:a3plus");
  EXPECT_EQ(part("Nvidia Tesla A100 GPU running in Americas"), "gpu:nvidia-tesla-a100");
  EXPECT_EQ(part("Nvidia Tesla A100 80GB GPU running in Americas"), "gpu:nvidia-a100-80gb");
  EXPECT_EQ(part("Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Iowa"),
            "gpu:nvidia-tesla-a100 spot");
  EXPECT_EQ(part("Nvidia H100 80GB Plus GPU running in Americas"), "gpu:nvidia-h100-mega-80gb");
  EXPECT_EQ(part("Nvidia H100 80GB Mega GPU running in Americas"), "gpu:nvidia-h100-mega-80gb");
  EXPECT_EQ(part("Nvidia H100 80GB GPU running in Americas"), "gpu:nvidia-h100-80gb");
  EXPECT_EQ(part("H200 141GB GPU running in Americas"), "gpu:nvidia-h200-141gb");
  EXPECT_EQ(part("RTX 6000 96GB running in Oregon"), "gpu:nvidia-rtx-pro-6000");
  EXPECT_EQ(part("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas"),
            "gpu:nvidia-b200 spot");
  EXPECT_EQ(part("SSD backed Local Storage"), "ssd");
  EXPECT_EQ(part("SSD backed Local Storage attached to Spot Preemptible VMs in Iowa"), "ssd spot");
  EXPECT_EQ(part("Balanced PD Capacity in Iowa"), "pd-balanced");
}

TEST(Skus, OfSomethingElseAreDropped) {
  for (const char* text :
       {"Custom Instance Core running in Americas", "A2 Premium Instance Core running in Iowa",
        "Reserved Nvidia H100 80GB Mega GPU in Iowa", "N1 Sole Tenancy Instance Core running in X",
        "Nvidia L4 GPU suspended in Iowa", "Commitment v1: Nvidia L4 GPU running in X for 1 Year",
        "DWS Calendar Mode Nvidia H100 80GB GPU running in Iowa", "Nvidia L40 GPU running in Iowa",
        "Nvidia L4 Virtual Workstation GPU running in Iowa", "SSD backed PD Capacity in Iowa",
        "Network Internet Egress from Iowa", ""})
    EXPECT_EQ(part(text), "") << text;
}

TEST(Skus, AreSummedWithLocalDisks) {
  const UnitPrices prices = prices_of({
      {"A3 Instance Core running in Americas", "OnDemand", 29'322'700},
      {"A3 Instance Ram running in Americas", "OnDemand", 2'553'400, "GiBy.h"},
      {"Nvidia H100 80GB GPU running in Americas", "OnDemand", 9'619'200'000},
      {"SSD backed Local Storage in Iowa", "OnDemand", 80'000'000, "GiBy.mo"},
  });
  const MachineParts parts{.type = "a3-highgpu-8g",
                           .vcpus = 208,
                           .memory_mb = 1872LL * 1024,
                           .accelerator = "nvidia-h100-80gb",
                           .gpus = 8};
  EXPECT_EQ(local_ssd_gb(parts), 6000);
  const auto price = price_of(prices, parts, "us-central1", false);
  ASSERT_TRUE(price);
  // 208 x 0.0293227 + 1872 x 0.0025534 + 8 x 9.6192, and 6000 x 0.08 / 730: 88.490221 in all.
  EXPECT_EQ(price->machine, 87'832'686);
  EXPECT_EQ(price->local_ssd, 657'535);
  EXPECT_FALSE(price_of(prices, parts, "us-central1", true)) << "no spot price is known";
  EXPECT_FALSE(price_of(prices, parts, "us-east1", false));
}

TEST(Skus, OfA4AreTheWhole) {
  const UnitPrices prices = prices_of({
      {"A4 Nvidia B200 (1 gpu slice) running in Americas", "OnDemand", 16'110'000'000},
      // Only the text of this SKU says that the price is for spot.
      {"Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas", "OnDemand",
       4'954'200'000},
  });
  const MachineParts parts{.type = "a4-highgpu-8g",
                           .vcpus = 224,
                           .memory_mb = 1,
                           .accelerator = "nvidia-b200",
                           .gpus = 8};
  EXPECT_EQ(price_of(prices, parts, "us-central1", false)->machine, 128'880'000);
  EXPECT_EQ(price_of(prices, parts, "us-central1", true)->machine, 39'633'600);
}

TEST(Skus, OfASharedCoreAreAPartOfItsVcpus) {
  const UnitPrices prices = prices_of({
      {"E2 Instance Core running in Americas", "OnDemand", 21'811'590},
      {"E2 Instance Ram running in Americas", "OnDemand", 2'923'530, "GiBy.h"},
  });
  const MachineParts parts{.type = "e2-small", .vcpus = 2, .memory_mb = 2048, .accelerator = {}};
  // Half a vCPU of its two: 0.5 x 0.02181159 + 2 x 0.00292353.
  EXPECT_EQ(price_of(prices, parts, "us-central1", false)->machine, 16'753);
}

TEST(Skus, OfStrangeUnitsAndNothingAreNoPrices) {
  EXPECT_TRUE(prices_of({{"Nvidia L4 GPU running in Iowa", "OnDemand", 5, "GiBy.mo"}}).empty());
  EXPECT_TRUE(prices_of({{"Nvidia L4 GPU running in Iowa", "OnDemand", 0}}).empty());
  EXPECT_TRUE(prices_of({{"Nvidia L4 GPU running in Iowa", "Commit1Yr", 5}}).empty());
}

TEST(Skus, AreKeptAsText) {
  const UnitPrices prices =
      prices_of({{"Nvidia L4 GPU running in Iowa", "OnDemand", 560'040'000},
                 {"Nvidia L4 GPU running in Iowa", "Preemptible", 325'000'000},
                 // If a part has two prices, the higher price counts.
                 {"Nvidia L4 GPU running in Americas", "OnDemand", 600'000'000}});
  const UnitPrices again = UnitPrices::parse(prices.text() + "rubbish\nx=-1\n");
  EXPECT_EQ(again.text(), prices.text());
  EXPECT_EQ(again.find("gpu:nvidia-l4", "us-central1", false), 600'000'000);
  EXPECT_EQ(again.find("gpu:nvidia-l4", "us-central1", true), 325'000'000);
  EXPECT_TRUE(again.has_part("gpu:nvidia-l4"));
  EXPECT_FALSE(again.has_part("gpu:nvidia"));
}

}  // namespace
}  // namespace lockstep::cloud::gcp
