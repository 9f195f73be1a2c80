// Tests the provider against a small stand-in for RunPod.
#include "base/error_testing.h"
#include "cloud/machine_name.h"
#include "cloud/runpod/runpod.h"
#include "cloud/scripted_web_testing.h"
#include "cloud/server_clock.h"
#include "codec/base64.h"
#include "codec/json.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

namespace lockstep::cloud::runpod {
namespace {

using testing::answered;
using testing::ScriptedWeb;
using testing::unanswered;

class RunpodProviderTest : public ::testing::Test {
 protected:
  RunpodProviderTest() {
    std::string name = (std::filesystem::temp_directory_path() / "runpodXXXXXX").string();
    folder = mkdtemp(name.data());
    spec.intent = "abcdefghij0123456789";
    spec.owner = "0123456789abcdef";
    spec.cluster = "mine";
    spec.offer.region = "US-KS-2";
    spec.offer.type = "NVIDIA L4";
    spec.offer.gpu = "L4";
    spec.offer.gpus = 2;
    spec.disk_gb = 80;
    spec.user_data = "#!/bin/sh\n";
    spec.public_key = "ssh-ed25519 AAAA lockstep";
    spec.lifetime_s = 7200;
    spec.ends_ms = 1'800'003'600'000;
    provider = make_provider({.env = [this](std::string_view what) -> std::optional<std::string> {
                                if (what == "RUNPOD_API_KEY" && !key.empty()) return key;
                                return std::nullopt;
                              },
                              .home = folder,
                              .cache = folder + "/cache",
                              .state = folder + "/state",
                              .owner = spec.owner});
    answers["GET /v2/pods"] = answered(200, R"j({"pods": []})j");
  }
  ~RunpodProviderTest() override { std::filesystem::remove_all(folder); }

  void bids(const char* least, const char* on_demand) {
    answers["POST /graphql"] =
        answered(200, std::string(R"j({"data": {"gpuTypes": [{"id": "NVIDIA L4", "lowestPrice":
            {"minimumBidPrice": )j") +
                          least + ", \"uninterruptablePrice\": " + on_demand + "}}]}}");
  }
  nlohmann::json input_of(const LaunchCall& call) {
    return codec::parse_json(call.body)["variables"]["input"];
  }
  LaunchCall call() {
    return {.region = "r",
            .zone = {},
            .token = name_of(spec, 1'800'000'000'000).text(),
            .target = "/graphql",
            .body = "{}"};
  }

  std::string folder;
  std::string key = "rpa_secret";
  LaunchSpec spec;
  std::unique_ptr<Provider> provider;
  std::map<std::string, Reply> answers;
  ScriptedWeb web{[this](const Question& question) {
    const auto found = answers.find(question.method + " " + question.target);
    return found == answers.end() ? answered(404, "{}") : found->second;
  }};
};

TEST_F(RunpodProviderTest, ThatEndGoesByRunpodsClock) {
  note_server_clock("Fri, 15 Jan 2027 09:00:00 GMT", web.now + 500, web.now + 500);
  const auto made = provider->prepare(web, spec);
  note_server_clock("Fri, 15 Jan 2027 08:00:00 GMT", web.now + 500, web.now + 500);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(input_of(*made)["terminateAfter"], "2027-01-15T11:00:00Z");
}

TEST_F(RunpodProviderTest, TheCallHasAnEndThatRunpodKeeps) {
  const auto made = provider->prepare(web, spec);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(web.asked.size(), 1U) << "the price, which nobody tells here";
  EXPECT_EQ(made->token, "ls-abcdefghij0123456789-0123456789abcdef-1-0-1a3185c5000");
  EXPECT_NE(made->body.find("podFindAndDeployOnDemand(input: $input)"), std::string::npos);
  const auto input = input_of(*made);
  EXPECT_EQ(input["terminateAfter"], "2027-01-15T10:00:00Z");
  EXPECT_EQ(input["cloudType"], "SECURE");
  EXPECT_EQ(input["gpuCount"], 2);
  EXPECT_EQ(input["containerDiskInGb"], 80);
  EXPECT_EQ(input["dataCenterId"], "US-KS-2");
  EXPECT_EQ(input["ports"], "22/tcp");
  EXPECT_FALSE(input.contains("bidPerGpu"));
  EXPECT_EQ(input["env"], codec::parse_json(R"j([
    {"key": "PUBLIC_KEY", "value": "ssh-ed25519 AAAA lockstep"},
    {"key": "LOCKSTEP_START", "value": "IyEvYmluL3NoCg=="},
    {"key": "LS_TAG_CLUSTER", "value": "mine"},
    {"key": "LS_TAG_ENDS", "value": "2027-01-15T09:00:00Z"}])j"));
  EXPECT_EQ(made->body.find(key), std::string::npos);
}

TEST_F(RunpodProviderTest, ARaisedPriceIsNotTaken) {
  answers["GET /v2/catalog/gpus?include=AVAILABILITY&product=POD&count=2&cloud=SECURE"] =
      answered(200, R"j({"gpus": [{"id": "NVIDIA L4", "memory": 24, "secure": true,
        "price": {"secure": 0.43}, "maxCount": {"secure": 8}}]})j");
  spec.offer.price.per_hour = 860'000;
  EXPECT_TRUE(provider->prepare(web, spec));
  spec.offer.price.per_hour = 850'000;
  EXPECT_EQ(code_of(provider->prepare(web, spec)), "price-raised");
}

TEST_F(RunpodProviderTest, OldGpusGetAnOldImage) {
  EXPECT_EQ(input_of(*provider->prepare(web, spec))["allowedCudaVersions"].at(0), "12.8");
  spec.offer.gpu = "V100-16GB";
  const auto input = input_of(*provider->prepare(web, spec));
  EXPECT_NE(input["imageName"].get<std::string>().find("cuda12.4"), std::string::npos);
  spec.image = "me/mine:1";
  EXPECT_EQ(input_of(*provider->prepare(web, spec))["imageName"], "me/mine:1");
  EXPECT_FALSE(input_of(*provider->prepare(web, spec)).contains("allowedCudaVersions"));
}

TEST_F(RunpodProviderTest, SpotBidsWhatItCostsNowAndNeverAboveTheCap) {
  spec.offer.spot = true;
  spec.offer.price.per_hour = 860'000;
  bids("0.25", "0.43");
  const auto made = provider->prepare(web, spec);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_NE(made->body.find("podRentInterruptable(input: $input)"), std::string::npos);
  EXPECT_EQ(input_of(*made)["bidPerGpu"], 0.25);
  EXPECT_EQ(input_of(*made)["env"].back()["key"], "LS_TAG_SPOT");
  spec.max_spot = 500'000;
  EXPECT_TRUE(provider->prepare(web, spec));
  spec.max_spot = 499'998;
  const auto above = provider->prepare(web, spec);
  ASSERT_FALSE(above);
  EXPECT_EQ(code_of(above), "bid-too-low");
  spec.max_spot.reset();
  spec.offer.price.per_hour = 499'998;
  EXPECT_FALSE(provider->prepare(web, spec)) << "above the plan";
  spec.offer.price.per_hour = 1'000'000;
  bids("0.44", "0.43");
  EXPECT_FALSE(provider->prepare(web, spec));
  bids("null", "0.43");
  EXPECT_EQ(code_of(provider->prepare(web, spec)), "no-capacity");
}

TEST_F(RunpodProviderTest, OneNodeAndASmallScriptOnly) {
  spec.count = 2;
  EXPECT_EQ(code_of(provider->prepare(web, spec)), "one-node");
  spec.count = 1;
  spec.user_data.assign(100'000, 'x');
  EXPECT_EQ(provider->prepare(web, spec).error().refusal, Refusal::stop);
}

TEST_F(RunpodProviderTest, NothingThatMayHaveHappenedIsRepeated) {
  answers["POST /graphql"] =
      answered(200, R"j({"data": {"podFindAndDeployOnDemand": {"id": "p1"}}})j");
  EXPECT_EQ(provider->launch(web, spec, call()).ids, std::vector<std::string>{"p1"});
  for (const Reply& reply : {unanswered(true), answered(500, ""), answered(200, "{")}) {
    web.asked.clear();
    answers["POST /graphql"] = reply;
    EXPECT_EQ(provider->launch(web, spec, call()).kind, LaunchOutcome::Kind::unknown);
    EXPECT_EQ(web.asked.size(), 1U);
  }
  answers["POST /graphql"] = answered(
      400,
      R"j({"errors": [{"message": "rpa_secret", "extensions": {"code": "BAD_USER_INPUT"}}]})j");
  const auto wrong = provider->launch(web, spec, call());
  EXPECT_EQ(wrong.refusal, Refusal::stop);
  EXPECT_EQ(wrong.message.find(key), std::string::npos) << wrong.message;
}

TEST_F(RunpodProviderTest, AnUnansweredLaunchIsLookedForByItsName) {
  const std::int64_t asked = web.now;
  web.now = asked + 164'000;
  EXPECT_EQ(provider->resolve(web, spec, call(), asked).kind, LaunchOutcome::Kind::unknown);
  web.now = asked + 165'000;
  web.asked.clear();
  const auto never = provider->resolve(web, spec, call(), asked);
  EXPECT_EQ(never.kind, LaunchOutcome::Kind::refused);
  EXPECT_EQ(never.code, "");
  EXPECT_EQ(web.asked.size(), 2U);
  answers["GET /v2/pods"] =
      answered(200, R"j({"pods": [{"id": "p9", "status": "RUNNING", "name": ")j" +
                        name_of(spec, 1'800'000'000'000).text() + "\"}]}");
  EXPECT_EQ(provider->resolve(web, spec, call(), asked).ids, std::vector<std::string>{"p9"});
  EXPECT_EQ(provider->list(web, {.regions = {}, .intent = "another"})->machines.size(), 0U);
  answers["GET /v2/pods"] = answered(200, "{}");
  EXPECT_EQ(provider->resolve(web, spec, call(), asked).kind, LaunchOutcome::Kind::unknown)
      << "an answer without a list is no absence";
}

TEST_F(RunpodProviderTest, EndsAllAndWhatIsGoneIsNoError) {
  answers["DELETE /v2/pods/p1"] = answered(204, "");
  answers["DELETE /v2/pods/p3"] = answered(403, R"j({"detail": "not yours"})j");
  EXPECT_TRUE(provider->end(web, {{.id = "p1"}, {.id = "p2"}}));
  const Status ended = provider->end(web, {{.id = "p3"}, {.id = "p1"}});
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "RunPod: end p3: HTTP 403: not yours");
  EXPECT_EQ(web.count("/v2/pods/p1"), 2U);
}

TEST_F(RunpodProviderTest, WhatWasEndedIsGoneOnceItIsNotListed) {
  const std::string pods = R"j({"pods": [{"id": "p1", "status": "RUNNING", "name": ")j" +
                           name_of(spec, 1'800'000'000'000).text() + "\"}]}";
  answers["GET /v2/pods"] = answered(200, pods);
  answers["DELETE /v2/pods/p1"] = answered(204, "");
  const auto before = provider->list(web, {})->machines;
  ASSERT_EQ(before.size(), 1U);
  const Machine& one = before[0];
  ASSERT_TRUE(provider->end(web, {{.id = one.id, .name = one.name, .intent = one.intent}}));
  EXPECT_EQ(provider->list(web, {})->machines.at(0).state, Machine::State::running);
  answers["GET /v2/pods"] = answered(200, R"j({"pods": []})j");
  EXPECT_TRUE(provider->list(web, {})->machines.empty()) << "too early to say";
  web.now += 1000;
  const auto after =
      provider->list(web, {.regions = {}, .intent = spec.intent, .owner = spec.owner})->machines;
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0].state, Machine::State::gone);
  EXPECT_TRUE(provider->list(web, {.regions = {}, .intent = "another"})->machines.empty());
}

TEST_F(RunpodProviderTest, OffersOfSpotAskForBothPrices) {
  bids("0.25", "0.43");
  answers["GET /v2/catalog/gpus?include=AVAILABILITY&product=POD&count=2&cloud=SECURE"] =
      answered(200, R"j({"gpus": [{"id": "NVIDIA L4", "memory": 24, "secure": true,
        "price": {"secure": 0.43}, "maxCount": {"secure": 8},
        "dataCenters": [{"id": "US-KS-2", "availability": "HIGH"}]}]})j");
  OfferQuery query{.gpu = *parse_gpu_wish("L4:2")};
  EXPECT_EQ(provider->offers(web, query).offers.at(0).price.per_hour, 860'000);
  EXPECT_EQ(web.asked.size(), 1U);
  query.spot = true;
  const auto spot = provider->offers(web, query);
  EXPECT_EQ(spot.offers.at(0).price.per_hour, 500'000);
  EXPECT_EQ(spot.offers.at(0).price.source, Price::Source::live);
  EXPECT_EQ(web.asked.size(), 2U) << "the catalog was kept";
  EXPECT_EQ(provider->offers(web, query).offers.at(0).price.source, Price::Source::cached);
}

TEST_F(RunpodProviderTest, ASilentProviderIsALine) {
  key.clear();
  auto catalog = provider->offers(web, {.gpu = *parse_gpu_wish("L4")});
  ASSERT_EQ(catalog.silent.size(), 1U);
  EXPECT_TRUE(catalog.silent[0].no_keys);
  key = "rpa_secret";
  catalog = provider->offers(web, {.gpu = *parse_gpu_wish("L4")});
  ASSERT_EQ(catalog.silent.size(), 1U);
  EXPECT_FALSE(catalog.silent[0].no_keys) << catalog.silent[0].why;
}

TEST_F(RunpodProviderTest, TheCheckTellsTheBalance) {
  answers["POST /graphql"] = answered(200, R"j({"data": {"myself": {"id": "u1", "email": "a@b.c",
      "clientBalance": 0.5}}})j");
  const auto found = provider->check(web);
  const auto bad = std::find_if(found.begin(), found.end(), [](const Finding& each) {
    return each.kind == Finding::Kind::bad;
  });
  ASSERT_NE(bad, found.end());
  EXPECT_EQ(bad->what, "the balance is 0.50 USD");
  EXPECT_EQ(*provider->account(web), "account u1, a@b.c");
}

}  // namespace
}  // namespace lockstep::cloud::runpod
