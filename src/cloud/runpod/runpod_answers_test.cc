#include "cloud/runpod/runpod_answers.h"

#include <gtest/gtest.h>

namespace lockstep::cloud::runpod {
namespace {

constexpr std::string_view kKinds = R"j({"gpus": [
  {"id": "NVIDIA H100 80GB HBM3", "name": "H100 SXM", "memory": 80, "secure": true,
   "community": true, "price": {"secure": 2.99, "community": 2.69},
   "maxCount": {"secure": 8, "community": 4}, "availability": "HIGH",
   "dataCenters": [{"id": "US-KS-2", "availability": "LOW"}, {"id": "EU-RO-1",
   "availability": "NONE"}, {"id": "../x", "availability": "HIGH"}]},
  {"id": "Tesla V100-SXM2-16GB", "memory": 16, "secure": true,
   "price": {"secure": 0.23, "community": 0.19}, "maxCount": {"secure": 2}},
  {"id": "NVIDIA L4", "memory": 24, "secure": false, "price": {"secure": 0.43},
   "maxCount": {"secure": 8}, "dataCenters": [{"id": "US-KS-2", "availability": "HIGH"}]},
  {"id": "NVIDIA L40S", "memory": 48, "secure": true, "price": {"secure": 700.0},
   "maxCount": {"secure": 8}, "dataCenters": [{"id": "US-KS-2", "availability": "HIGH"}]},
  {"id": "AMD Instinct MI300X OAM", "memory": 192, "secure": true, "price": {"secure": 1.0},
   "maxCount": {"secure": 8}},
  7, {"price": 3}
]})j";

std::vector<Offer> test_offers(const char* wish, const std::map<std::string, Bid>* bids = nullptr,
                               const std::vector<std::string>& regions = {}) {
  const OfferQuery query{.gpu = *parse_gpu_wish(wish), .spot = bids != nullptr, .regions = regions};
  return offers_of(codec::parse_json(kKinds), query, {.source = Price::Source::live, .as_of_ms = 5},
                   query.gpu.count, bids);
}

TEST(RunpodAnswers, AnOfferForEachDataCenter) {
  const auto offers = test_offers("H100-SXM:2");
  ASSERT_EQ(offers.size(), 2U);
  EXPECT_EQ(offers[0].region, "US-KS-2");
  EXPECT_EQ(offers[0].stock, Stock::in_stock);
  EXPECT_EQ(offers[1].stock, Stock::none);
  EXPECT_EQ(offers[0].type, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(offers[0].gpus, 2);
  EXPECT_EQ(offers[0].price.per_hour, 5'980'000);
  EXPECT_EQ(offers[0].most_nodes, 1);
  EXPECT_EQ(offers[0].ending, Ending::by_itself);
  // The disk has at least 50 GB, at 0.10 USD per GB and month.
  EXPECT_EQ(offers[0].per_machine_hour(0), 5'980'000 + 5 * kDollar / 730 + 1);
  EXPECT_EQ(test_offers("H100-SXM:2", nullptr, {"EU-RO-1"}).size(), 1U);
  EXPECT_TRUE(test_offers("H100-SXM:16").empty());
}

TEST(RunpodAnswers, NoDataCenterIsNoStock) {
  const auto offers = test_offers("V100");
  ASSERT_EQ(offers.size(), 1U);
  EXPECT_EQ(offers[0].gpu, "V100-16GB");
  EXPECT_EQ(offers[0].region, "");
  EXPECT_EQ(offers[0].stock, Stock::none);
}

TEST(RunpodAnswers, OnlySecureWithARealPrice) {
  EXPECT_TRUE(test_offers("L4").empty());
  EXPECT_TRUE(test_offers("L40S").empty());
  const auto all = offers_of(codec::parse_json(kKinds), {}, {}, 1, nullptr);
  // Offers: H100 with 1, 2, 4 and 8 GPUs in two places each, V100 with 1 and 2.
  EXPECT_EQ(all.size(), 10U);
  EXPECT_EQ(all[2].stock, Stock::unknown) << "the stock that was asked for is of one GPU";
}

TEST(RunpodAnswers, SpotHasItsOwnPrice) {
  const auto bids = bids_of(codec::parse_json(R"j({"data": {"gpuTypes": [
    {"id": "NVIDIA H100 80GB HBM3", "lowestPrice":
      {"minimumBidPrice": 1.5, "uninterruptablePrice": 2.99}},
    {"id": "Tesla V100-SXM2-16GB", "lowestPrice": {"minimumBidPrice": 0.3}},
    {"id": "NVIDIA L4", "lowestPrice": {"minimumBidPrice": null}},
    {"id": "NVIDIA L40S", "lowestPrice": null}]}})j"));
  EXPECT_EQ(bids.size(), 2U);
  const auto offers = test_offers("H100-SXM:2", &bids);
  ASSERT_EQ(offers.size(), 2U);
  EXPECT_TRUE(offers[0].spot);
  EXPECT_EQ(offers[0].price.per_hour, 3'000'000);
  EXPECT_EQ(offers[0].not_for_sale, "");
  EXPECT_NE(test_offers("V100", &bids).at(0).not_for_sale, "");
  EXPECT_TRUE(test_offers("L4", &bids).empty());
}

TEST(RunpodAnswers, PodsAreKnownByTheirNames) {
  const auto pods = machines_of(codec::parse_json(R"j({"pods": [
    {"id": "p1", "name": "ls-abc-own-1-0-1a3185c5000", "status": "RUNNING", "cost": 2.99,
     "gpu": {"id": "NVIDIA L4", "count": 1}, "dataCenterId": "US-KS-2",
     "createdAt": "2027-01-15T08:00:05Z",
     "env": {"LS_TAG_CLUSTER": "mine", "LS_TAG_ENDS": "2027-01-15T09:00:00Z"},
     "ssh": {"direct": {"host": "192.0.2.7", "port": 40022, "username": "root"}}},
    {"id": "p2", "name": "theirs", "status": "RUNNING"},
    {"id": "p/3", "name": "ls-abc-own-1-0-1", "status": "RUNNING"},
    {"id": "p4", "name": "ls-abc-own-1-1-1a3185c5000", "status": "STARTING", "ssh": {"direct": null}},
    {"id": "p5", "name": "ls-abc-own-1-0-1", "status": "PROVISIONING", "ssh": null},
    {"id": "p6", "name": "ls-abc-own-1-0-1", "status": "EXITED", "env": {"LS_TAG_SPOT": "1"}},
    {"id": "p7", "name": "ls-abc-own-1-0-1", "status": "EXITED", "env": []},
    {"id": "p8", "name": "ls-abc-own-1-0-1", "status": "ERROR"},
    {"id": "p9", "name": "ls-abc-own-1-0-1", "status": "TERMINATED"}]})j"),
                                1'800'000'060'000);
  ASSERT_EQ(pods.size(), 7U);
  EXPECT_EQ(pods[0].address, "192.0.2.7");
  EXPECT_EQ(pods[0].port, 40022);
  EXPECT_EQ(pods[0].user, "root");
  EXPECT_EQ(pods[0].cluster, "mine");
  EXPECT_EQ(pods[0].launched_ms, 1'800'000'005'000);
  EXPECT_EQ(pods[0].ends_ms, 1'800'003'600'000);
  EXPECT_EQ(pods[0].per_hour, 2'990'000);
  EXPECT_EQ(pods[0].region, "US-KS-2");
  EXPECT_EQ(pods[1].state, Machine::State::pending);
  EXPECT_EQ(pods[1].address, "");
  EXPECT_EQ(pods[2].state, Machine::State::unhealthy) << "since 1970";
  EXPECT_EQ(pods[3].state, Machine::State::stopped);
  EXPECT_TRUE(pods[3].taken);
  EXPECT_FALSE(pods[4].taken);
  EXPECT_EQ(pods[5].state, Machine::State::unhealthy);
  EXPECT_EQ(pods[6].state, Machine::State::gone);
}

TEST(RunpodAnswers, WhatALaunchCameTo) {
  const auto of = [](const char* text) { return launched(codec::parse_json(text)); };
  EXPECT_EQ(of(R"j({"data": {"podRentInterruptable": {"id": "p1", "costPerHr": 1}}})j").ids,
            std::vector<std::string>{"p1"});
  using Kind = LaunchOutcome::Kind;
  const auto full = of(
      R"j({"errors": [{"message": "There are no longer any instances available with the requested specifications.", "extensions": {"code": "INTERNAL_SERVER_ERROR"}}]})j");
  EXPECT_EQ(full.kind, Kind::refused);
  EXPECT_EQ(full.refusal, Refusal::next_zone);
  EXPECT_EQ(full.code, "no-capacity");
  EXPECT_EQ(of(R"j({"errors": [{"message": "Your balance is too low"}]})j").refusal,
            Refusal::provider_out);
  EXPECT_EQ(of(R"j({"errors": [{"message": "odd"}], "data": null})j").refusal, Refusal::next_zone);
  EXPECT_EQ(
      of(R"j({"errors": [{"message": "x", "extensions": {"code": "BAD_USER_INPUT"}}]})j").refusal,
      Refusal::stop);
  // RunPod may have made the pod.
  EXPECT_EQ(of(R"j({"errors": [{"message": "Something went wrong", "extensions":
    {"code": "INTERNAL_SERVER_ERROR"}}], "data": {"podFindAndDeployOnDemand": null}})j")
                .kind,
            Kind::unknown);
  EXPECT_EQ(of(R"j({"data": {"podFindAndDeployOnDemand": null}})j").kind, Kind::unknown);
  EXPECT_EQ(of("[]").kind, Kind::unknown);
}

TEST(RunpodAnswers, WordsOfRefusals) {
  const auto problem = words_of(codec::parse_json(
      R"j({"title": "Unprocessable", "status": 422, "detail": "No.", "errors": ["$: a", "$: b"]})j"));
  EXPECT_EQ(problem.message, "No.; $: a; $: b");
  const auto echoed = words_of(codec::parse_json(
      R"j({"errors": [{"message": "Variable \"$input\" got invalid value { secret }; no."}]})j"));
  EXPECT_EQ(echoed.message, "Variable \"$input\" got invalid value");
  EXPECT_EQ(refusal_of(refusal_rows(), "http-400"), Refusal::next_zone);
  EXPECT_EQ(refusal_of(refusal_rows(), "http-402"), Refusal::provider_out);
  EXPECT_EQ(refusal_of(refusal_rows(), "http-422"), Refusal::stop);
}

}  // namespace
}  // namespace lockstep::cloud::runpod
