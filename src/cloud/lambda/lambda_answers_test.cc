#include "cloud/lambda/lambda_answers.h"

#include <gtest/gtest.h>

namespace lockstep::cloud::lambda {
namespace {

constexpr std::string_view kTypes = R"j({"data": {
  "gpu_8x_a100_80gb_sxm4": {"instance_type": {"name": "gpu_8x_a100_80gb_sxm4",
      "description": "8x A100 (80 GB SXM4)",
                           "gpu_description" : "A100 (80 GB SXM4)",
                           "price_cents_per_hour" : 1432,
                           "specs" : {
  "vcpus" : 240, "memory_gib" : 1800, "storage_gib" : 20480, "gpus" : 8
}
}
, "regions_with_capacity_available"
    : [ {"name" : "us-east-1", "description" : "x"}, {"name" : "us-west-2", "description" : "y"} ]
}
, "gpu_1x_gh200" : {
  "instance_type" : {
    "name" : "gpu_1x_gh200",
    "gpu_description" : "GH200 (96 GB)",
    "price_cents_per_hour" : 149,
    "specs" : {"vcpus" : 64, "memory_gib" : 432, "storage_gib" : 4096, "gpus" : 1}
  },
  "regions_with_capacity_available" : []
},
                   "gpu_8x_v100" : {
                     "instance_type" : {
                       "name" : "gpu_8x_v100",
                       "gpu_description" : "Tesla V100 (16 GB)",
                       "price_cents_per_hour" : 70000,
                       "specs" : {"gpus" : 8}
                     },
                     "regions_with_capacity_available" : [ {"name" : "us-east-1"} ]
                   },
                                   "cpu_4x_general"
    : {
      "instance_type" : {
        "name" : "cpu_4x_general",
        "gpu_description" : "N/A",
        "price_cents_per_hour" : 20,
        "specs" : {"gpus" : 0}
      },
      "regions_with_capacity_available" : [ {"name" : "us-east-1"} ]
    },
      "odd" : 7,
      "odder" : {
  "instance_type" : [], "regions_with_capacity_available" : "none"
}
}
})j";

std::vector<Offer> test_offers(const OfferQuery& query) {
  return offers_of(codec::parse_json(kTypes), query,
                   {.source = Price::Source::live, .as_of_ms = 5});
}

TEST(LambdaAnswers, AnOfferForEachRegionWithRoom) {
  const auto offers = test_offers({.gpu = *parse_gpu_wish("A100-80GB:8")});
  ASSERT_EQ(offers.size(), 2U);
  EXPECT_EQ(offers[0].region, "us-east-1");
  EXPECT_EQ(offers[1].region, "us-west-2");
  EXPECT_EQ(offers[0].gpu, "A100-80GB");
  EXPECT_EQ(offers[0].price.per_hour, 14'320'000);
  EXPECT_EQ(offers[0].price.source, Price::Source::live);
  EXPECT_EQ(offers[0].stock, Stock::in_stock);
  EXPECT_EQ(offers[0].vcpus, 240);
  EXPECT_EQ(offers[0].memory_gb, 1800);
  EXPECT_EQ(offers[0].disk_gb, 20480);
  EXPECT_EQ(offers[0].ending, Ending::with_guard);
  EXPECT_EQ(offers[0].per_machine_hour(500), 14'320'000);
  EXPECT_TRUE(test_offers({.gpu = *parse_gpu_wish("A100:1")}).empty());
}

TEST(LambdaAnswers, SoldOutIsAnOfferWithoutAPlace) {
  const auto offers = test_offers({.gpu = *parse_gpu_wish("GH200")});
  ASSERT_EQ(offers.size(), 1U);
  EXPECT_EQ(offers[0].region, "");
  EXPECT_EQ(offers[0].stock, Stock::none);
  EXPECT_EQ(offers[0].arch, "arm64");
}

TEST(LambdaAnswers, OnlyWhatHasAPriceAndAGpu) {
  const auto all = test_offers({});
  EXPECT_EQ(all.size(), 3U);
  const auto there = test_offers({.gpu = {}, .spot = false, .regions = {"us-west-2"}});
  ASSERT_EQ(there.size(), 1U);
  EXPECT_EQ(there[0].region, "us-west-2");
}

TEST(LambdaAnswers, MachinesAreKnownByNameAndTags) {
  const auto machines = machines_of(codec::parse_json(R"j({"data": [
    {"id": "0920582c", "name": "ls-abc-own-2-3-1a3185c5000", "ip": "198.51.100.2",
     "status": "active", "region": {"name": "us-east-1"},
     "instance_type": {"name": "gpu_1x_a10", "price_cents_per_hour": 75},
     "tags": [{"key": "lockstep:cluster", "value": "mine"},
              {"key": "lockstep:ends", "value": "2027-01-15T08:00:00Z"}, 3]},
    {"id": "somebodys", "name": "theirs", "status": "active"},
    {"id": "b/../x", "name": "ls-abc-own-1-0-1", "status": "booting"},
    {"id": "tagged", "name": "renamed", "status": "unhealthy",
     "tags": [{"key": "lockstep:intent", "value": "abc"}]},
    {"id": "t", "name": "ls-abc-own-1-0-1", "status": "terminated"},
    {"id": "p", "name": "ls-abc-own-1-0-1", "status": "preempted"},
    {"id": "new", "name": "ls-abc-own-1-0-1", "status": "hatching", "private_ip": null}]})j"));
  ASSERT_EQ(machines.size(), 5U);
  const Machine& one = machines[0];
  EXPECT_EQ(one.intent, "abc");
  EXPECT_EQ(one.owner, "own");
  EXPECT_EQ(one.node, 3);
  EXPECT_EQ(one.cluster, "mine");
  EXPECT_EQ(one.launched_ms, 1'800'000'000'000);
  EXPECT_EQ(one.ends_ms, 1'800'000'000'000);
  EXPECT_EQ(one.state, Machine::State::running);
  EXPECT_EQ(one.address, "198.51.100.2");
  EXPECT_EQ(one.private_address, "");
  EXPECT_EQ(one.per_hour, 750'000);
  EXPECT_EQ(one.user, "ubuntu");
  EXPECT_EQ(machines[1].id, "tagged");
  EXPECT_EQ(machines[1].state, Machine::State::unhealthy);
  EXPECT_EQ(machines[2].state, Machine::State::gone);
  EXPECT_FALSE(machines[2].taken);
  EXPECT_TRUE(machines[3].taken);
  EXPECT_EQ(machines[4].state, Machine::State::pending);
}

TEST(LambdaAnswers, TheNewestStackForThatMachine) {
  const auto images = codec::parse_json(R"j({"data": [
    {"family": "lambda-stack-22-04", "architecture": "x86_64", "region": {"name": "r"}},
    {"family": "lambda-stack-24-04", "architecture": "x86_64", "region": {"name": "r"}},
    {"family": "lambda-stack-26-04", "architecture": "arm64", "region": {"name": "r"}},
    {"family": "lambda-stack-28-04", "architecture": "x86_64", "region": {"name": "other"}},
    {"family": "lambda-stack-legacy-22-04", "architecture": "x86_64", "region": {"name": "r"}},
    {"family": "ubuntu-24-04", "architecture": "x86_64", "region": {"name": "r"}}]})j");
  EXPECT_EQ(family_of(images, "r", "x86_64", false), "lambda-stack-24-04");
  EXPECT_EQ(family_of(images, "r", "arm64", false), "lambda-stack-26-04");
  EXPECT_EQ(family_of(images, "r", "x86_64", true), "lambda-stack-legacy-22-04");
  EXPECT_EQ(family_of(images, "elsewhere", "x86_64", false), "");
}

TEST(LambdaAnswers, KeysAreComparedWithoutComments) {
  const auto keys = codec::parse_json(R"j({"data": [
    {"name": "laptop", "public_key": "ssh-ed25519 AAAA1 me@laptop"},
    {"name": "ours", "public_key": "ssh-ed25519 AAAA2"}]})j");
  EXPECT_EQ(registered_name(keys, "ssh-ed25519 AAAA2 lockstep"), "ours");
  EXPECT_EQ(registered_name(keys, "ssh-ed25519 AAAA1"), "laptop");
  EXPECT_EQ(registered_name(keys, "ssh-ed25519 AAAA3 me@laptop"), "");
}

TEST(LambdaAnswers, ARulesetSaysWhomItLetsIn) {
  const auto sets = [](const char* rules) {
    return codec::parse_json(std::string(R"j({"data": [{"id": "f1", "name": "lockstep-o",
      "region": {"name": "r"}, "rules": [)j") +
                             rules + "]}]}");
  };
  const char* const own = R"j({"protocol": "tcp", "port_range": [22, 22],
                              "source_network": "192.0.2.1/32"})j";
  std::string two = std::string(own) + "," + own;
  two.replace(two.find("192.0.2.1"), 9, "192.0.2.9");
  using Networks = std::vector<std::string>;
  EXPECT_EQ(ruleset_of(sets(own), "lockstep-o", "r")->networks, Networks{"192.0.2.1/32"});
  EXPECT_EQ(ruleset_of(sets(two.c_str()), "lockstep-o", "r")->networks,
            (Networks{"192.0.2.9/32", "192.0.2.1/32"}));
  EXPECT_TRUE(ruleset_of(sets(two.c_str()), "lockstep-o", "r")->only_ssh);
  two.replace(two.find("[22, 22]"), 8, "[22, 80]");
  EXPECT_FALSE(ruleset_of(sets(two.c_str()), "lockstep-o", "r")->only_ssh);
  EXPECT_TRUE(ruleset_of(sets(""), "lockstep-o", "r")->networks.empty());
  EXPECT_FALSE(ruleset_of(sets(own), "lockstep-p", "r"));
  EXPECT_FALSE(ruleset_of(sets(own), "lockstep-o", "s"));
}

TEST(LambdaAnswers, CodesMeanWhatTheTableSays) {
  const auto meaning = [](const char* code) { return refusal_of(refusal_rows(), code); };
  EXPECT_EQ(meaning("instance-operations/launch/insufficient-capacity"), Refusal::next_zone);
  EXPECT_EQ(meaning("global/invalid-api-key"), Refusal::provider_out);
  EXPECT_EQ(meaning("global/quota-exceeded"), Refusal::provider_out);
  EXPECT_EQ(meaning("global/invalid-parameters"), Refusal::stop);
  EXPECT_EQ(meaning("global/never-heard-of"), Refusal::unknown);
  const auto words = words_of(codec::parse_json(
      R"j({"error": {"code": "a/b", "message": "No.", "suggestion": "Ask later."}})j"));
  EXPECT_EQ(words.code, "a/b");
  EXPECT_EQ(words.message, "No. (Ask later.)");
  EXPECT_EQ(words_of(codec::parse_json("<html>")).code, "");
}

}  // namespace
}  // namespace lockstep::cloud::lambda
