// Tests the provider against a small stand-in for Lambda.
#include "base/error_testing.h"
#include "cloud/lambda/lambda.h"
#include "cloud/machine_name.h"
#include "cloud/scripted_web_testing.h"
#include "codec/json.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

namespace lockstep::cloud::lambda {
namespace {

using testing::answered;
using testing::ScriptedWeb;
using testing::unanswered;

class LambdaProviderTest : public ::testing::Test {
 protected:
  LambdaProviderTest() {
    std::string name = (std::filesystem::temp_directory_path() / "lambdaXXXXXX").string();
    folder = mkdtemp(name.data());
    spec.intent = "abcdefghij0123456789";
    spec.owner = "0123456789abcdef";
    spec.cluster = "mine";
    spec.offer.region = "us-east-1";
    spec.offer.type = "gpu_1x_a10";
    spec.offer.gpu = "A10";
    spec.user_data = "#cloud-config\n";
    spec.public_key = "ssh-ed25519 AAAA lockstep";
    spec.allow_from = "198.51.100.7/32";
    spec.ends_ms = 1'800'003'600'000;
    provider = make_provider({.env = [this](std::string_view what) -> std::optional<std::string> {
                                if (what == "LAMBDA_API_KEY" && !key.empty()) return key;
                                return std::nullopt;
                              },
                              .home = folder,
                              .cache = folder + "/cache",
                              .state = folder + "/state",
                              .owner = spec.owner});
    answers["GET /api/v1/ssh-keys"] = answered(200, R"j({"data": []})j");
    answers["POST /api/v1/ssh-keys"] = answered(200, R"j({"data": {"id": "k1"}})j");
    answers["GET /api/v1/images"] = answered(200, R"j({"data": [{"family": "lambda-stack-24-04",
        "architecture": "x86_64", "region": {"name": "us-east-1"}}]})j");
    answers["GET /api/v1/firewall-rulesets"] = answered(200, R"j({"data": []})j");
    answers["POST /api/v1/firewall-rulesets"] = answered(200, R"j({"data": {"id": "f1"}})j");
    answers["GET /api/v1/instances"] = answered(200, R"j({"data": []})j");
  }
  ~LambdaProviderTest() override { std::filesystem::remove_all(folder); }

  static Reply instances(const std::vector<std::pair<std::string, std::string>>& named) {
    std::string list;
    for (const auto& [id, name] : named)
      list += fmt::format(R"j({}{{"id": "{}", "name": "{}", "status": "active"}})j",
                          list.empty() ? "" : ",", id, name);
    return answered(200, "{\"data\": [" + list + "]}");
  }
  LaunchOutcome launch_with(Reply reply) {
    answers["POST /api/v1/instance-operations/launch"] = std::move(reply);
    return provider->launch(web, spec,
                            {.region = "us-east-1",
                             .zone = {},
                             .token = name_of(spec, 1'800'000'000'000).text(),
                             .target = "/api/v1/instance-operations/launch",
                             .body = "{}"});
  }
  nlohmann::json body_of(std::size_t question) {
    return codec::parse_json(web.asked.at(question).body);
  }

  std::string folder;
  std::string key = "secret_x.y";
  LaunchSpec spec;
  std::unique_ptr<Provider> provider;
  std::map<std::string, Reply> answers;
  ScriptedWeb web{[this](const Question& question) {
    const auto found = answers.find(question.method + " " + question.target);
    return found == answers.end() ? answered(404, R"j({"error": {"code": "test/none"}})j")
                                  : found->second;
  }};
};

TEST_F(LambdaProviderTest, PreparesOnceAndSaysTheWholeCall) {
  const auto call = provider->prepare(web, spec);
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(call->token, "ls-abcdefghij0123456789-0123456789abcdef-1-0-1a3185c6482");
  EXPECT_EQ(codec::parse_json(call->body), codec::parse_json(R"j({
    "region_name": "us-east-1", "instance_type_name": "gpu_1x_a10",
    "ssh_key_names": ["lockstep-0123456789abcdef-1e38a9a490bca94f"],
    "name": "ls-abcdefghij0123456789-0123456789abcdef-1-0-1a3185c6482",
    "image": {"family": "lambda-stack-24-04"}, "user_data": "#cloud-config\n",
    "firewall_rulesets": [{"id": "f1"}],
    "tags": [{"key": "lockstep:intent", "value": "abcdefghij0123456789"},
             {"key": "lockstep:owner", "value": "0123456789abcdef"},
             {"key": "lockstep:cluster", "value": "mine"},
             {"key": "lockstep:ends", "value": "2027-01-15T09:00:00Z"}]})j"))
      << call->body;
  EXPECT_EQ(web.asked.size(), 6U);
  EXPECT_EQ(body_of(4), codec::parse_json(R"j({"name": "lockstep-0123456789abcdef",
    "region": "us-east-1", "rules": [{"protocol": "tcp", "port_range": [22, 22],
    "source_network": "198.51.100.7/32", "description": "SSH for Lockstep"}]})j"));
  // The pacer allows one call a second.
  EXPECT_EQ(web.now, 1'800'000'000'000 + 5LL * 1050);
  spec.node = 1;
  ASSERT_TRUE(provider->prepare(web, spec));
  EXPECT_EQ(web.asked.size(), 7U) << "only the price is looked at again";
}

TEST_F(LambdaProviderTest, ARaisedPriceIsNotTaken) {
  answers["GET /api/v1/instance-types"] = answered(200, R"j({"data": {"gpu_1x_a10": {
    "instance_type": {"name": "gpu_1x_a10", "gpu_description": "A10 (24 GB PCIe)",
      "price_cents_per_hour": 75, "specs": {"vcpus": 30, "gpus": 1}},
    "regions_with_capacity_available": []}}})j");
  spec.offer.gpus = 1;
  spec.offer.price.per_hour = 750'000;
  EXPECT_TRUE(provider->prepare(web, spec));
  spec.offer.price.per_hour = 740'000;
  const auto raised = provider->prepare(web, spec);
  ASSERT_FALSE(raised);
  EXPECT_EQ(code_of(raised), "price-raised");
  EXPECT_EQ(raised.error().refusal, Refusal::next_zone);
  EXPECT_EQ(raised.error().message,
            "gpu_1x_a10 costs 0.75 USD an hour now, 0.74 when it was offered");
}

TEST_F(LambdaProviderTest, AKeyThatIsThereIsTakenWhateverItsName) {
  answers["GET /api/v1/ssh-keys"] = answered(
      200, R"j({"data": [{"name": "laptop", "public_key": "ssh-ed25519 AAAA me@laptop"}]})j");
  const auto call = provider->prepare(web, spec);
  ASSERT_TRUE(call);
  EXPECT_NE(call->body.find(R"j("ssh_key_names":["laptop"])j"), std::string::npos) << call->body;
  EXPECT_EQ(web.count("public_key"), 0U);
}

TEST_F(LambdaProviderTest, SomebodyElseMayRegisterTheKeyFirst) {
  answers["POST /api/v1/ssh-keys"] =
      answered(400, R"j({"error": {"code": "global/duplicate", "message": "there"}})j");
  const auto call = provider->prepare(web, spec);
  ASSERT_FALSE(call);
  EXPECT_EQ(call.error().refusal, Refusal::stop);
  EXPECT_EQ(web.count("/ssh-keys"), 4U);
}

TEST_F(LambdaProviderTest, RulesAreChangedWhereTheAddressHas) {
  answers["GET /api/v1/firewall-rulesets"] = answered(200, R"j({"data": [{"id": "f7",
    "name": "lockstep-0123456789abcdef", "region": {"name": "us-east-1"}, "rules": []}]})j");
  answers["PATCH /api/v1/firewall-rulesets/f7"] = answered(200, R"j({"data": {"id": "f7"}})j");
  ASSERT_TRUE(provider->allow(web, "us-east-1", "203.0.113.9/32"));
  EXPECT_EQ(body_of(1)["rules"][0]["source_network"], "203.0.113.9/32");
  EXPECT_FALSE(body_of(1).contains("region"));
  ASSERT_TRUE(provider->allow(web, "us-south-1", "203.0.113.9/32"));
  EXPECT_EQ(web.asked.size(), 2U) << "that region has none";
  EXPECT_FALSE(provider->allow(web, "us-east-1", "2001:db8::/64"));
}

// 192.0.2.0/24 stands for another cluster's --allow-from. A launch closes no network. Only a move
// of the address closes networks that no rental needs.
TEST_F(LambdaProviderTest, ALaunchKeepsTheRulesOpenToOthers) {
  answers["GET /api/v1/firewall-rulesets"] = answered(200, R"j({"data": [{"id": "f7",
    "name": "lockstep-0123456789abcdef", "region": {"name": "us-east-1"}, "rules": [
    {"protocol": "tcp", "port_range": [22, 22], "source_network": "192.0.2.0/24"}]}]})j");
  answers["PATCH /api/v1/firewall-rulesets/f7"] = answered(200, R"j({"data": {"id": "f7"}})j");
  const auto set = [this] {
    std::vector<std::string> networks;
    const auto body = body_of(web.asked.size() - 1);
    for (const auto& rule : body["rules"])
      networks.push_back(rule["source_network"]);
    return networks;
  };
  using Networks = std::vector<std::string>;
  ASSERT_TRUE(provider->prepare(web, spec));
  EXPECT_EQ(web.count("/firewall-rulesets/f7"), 1U);
  for (std::size_t at = 0; at < web.asked.size(); ++at)
    if (web.asked[at].method == "PATCH") {
      ASSERT_EQ(body_of(at)["rules"].size(), 2U);
      EXPECT_EQ(body_of(at)["rules"][0]["source_network"], "192.0.2.0/24");
      EXPECT_EQ(body_of(at)["rules"][1]["source_network"], "198.51.100.7/32");
    }
  ASSERT_TRUE(provider->allow(web, "us-east-1", "198.51.100.7/32,203.0.113.1/32"));
  EXPECT_EQ(set(), (Networks{"198.51.100.7/32", "203.0.113.1/32"}));
  // This machine and its guard elsewhere may share an address.
  ASSERT_TRUE(provider->allow(web, "us-east-1", "198.51.100.1/32,198.51.100.1/32"));
  EXPECT_EQ(set(), Networks{"198.51.100.1/32"});
}

TEST_F(LambdaProviderTest, AnAccountIsKnownByTheKeyThatWasRegisteredThere) {
  answers["GET /api/v1/ssh-keys"] = answered(
      200, R"j({"data": [{"name": "laptop", "public_key": "ssh-ed25519 AAAA me@laptop"}]})j");
  EXPECT_TRUE(*provider->has_key(web, "ssh-ed25519 AAAA lockstep"));
  EXPECT_FALSE(*provider->has_key(web, "ssh-ed25519 BBBB lockstep"));
  answers["GET /api/v1/ssh-keys"] =
      answered(403, R"j({"error": {"code": "global/invalid-api-key", "message": "no"}})j");
  EXPECT_FALSE(provider->has_key(web, "ssh-ed25519 AAAA lockstep"));
}

TEST_F(LambdaProviderTest, TooMuchUserDataIsRefusedHere) {
  spec.user_data.assign(1'000'001, 'x');
  const auto call = provider->prepare(web, spec);
  ASSERT_FALSE(call);
  EXPECT_EQ(call.error().refusal, Refusal::stop);
  EXPECT_TRUE(web.asked.empty());
}

TEST_F(LambdaProviderTest, OfALaunchThatMayHaveHappenedNothingIsRepeated) {
  EXPECT_EQ(launch_with(answered(200, R"j({"data": {"instance_ids": ["i1"]}})j")).ids,
            std::vector<std::string>{"i1"});
  web.asked.clear();
  for (const Reply& reply : {unanswered(true), unanswered(true, Errc::timeout), answered(502, ""),
                             answered(200, R"j({"data": {"instance_ids": []}})j")}) {
    web.asked.clear();
    EXPECT_EQ(launch_with(reply).kind, LaunchOutcome::Kind::unknown);
    EXPECT_EQ(web.asked.size(), 1U);
  }
  const auto full = launch_with(answered(400, R"j({"error": {"code":
    "instance-operations/launch/insufficient-capacity", "message": "Not enough."}})j"));
  EXPECT_EQ(full.kind, LaunchOutcome::Kind::refused);
  EXPECT_EQ(full.refusal, Refusal::next_zone);
  EXPECT_EQ(full.message, "HTTP 400: Not enough.");
  const auto nobody = launch_with(unanswered(false));
  EXPECT_EQ(nobody.kind, LaunchOutcome::Kind::refused);
  EXPECT_EQ(nobody.refusal, Refusal::provider_out);
}

TEST_F(LambdaProviderTest, LaunchesAreTwelveSecondsApart) {
  launch_with(answered(400, "{}"));
  launch_with(answered(400, "{}"));
  EXPECT_EQ(web.now, 1'800'000'000'000 + 12'100);
}

TEST_F(LambdaProviderTest, AnUnansweredLaunchIsLookedForByItsName) {
  const std::string name = name_of(spec, 1'800'000'000'000).text();
  const LaunchCall call{.region = {}, .zone = {}, .token = name, .target = {}, .body = {}};
  const std::int64_t asked = web.now;
  EXPECT_EQ(provider->resolve(web, spec, call, asked).kind, LaunchOutcome::Kind::unknown);
  // A launch may wait 90 s, take 60 s, and appear 60 s later.
  web.now = asked + 209'000;
  EXPECT_EQ(provider->resolve(web, spec, call, asked).kind, LaunchOutcome::Kind::unknown);
  web.asked.clear();
  web.now = asked + 211'000;
  const auto never = provider->resolve(web, spec, call, asked);
  EXPECT_EQ(never.kind, LaunchOutcome::Kind::refused);
  EXPECT_EQ(never.code, "");
  EXPECT_EQ(web.count("/instances"), 2U);
  answers["GET /api/v1/instances"] = instances({{"other", name + "0"}, {"i9", name}});
  web.now += 1000;
  EXPECT_EQ(provider->resolve(web, spec, call, web.now).ids, std::vector<std::string>{"i9"});
  answers["GET /api/v1/instances"] = answered(500, "");
  web.now = asked + 500'000;
  EXPECT_EQ(provider->resolve(web, spec, call, asked).kind, LaunchOutcome::Kind::unknown);
}

TEST_F(LambdaProviderTest, AnEndMustNameThemAll) {
  const std::string name = name_of(spec, 1'800'000'000'000).text();
  const std::vector<Machine> two = {{.id = "i1"}, {.id = "i2"}};
  const std::string target = "POST /api/v1/instance-operations/terminate";
  answers[target] =
      answered(200, R"j({"data": {"terminated_instances": [{"id": "i1"}, {"id": "i2"}]}})j");
  EXPECT_TRUE(provider->end(web, two));
  EXPECT_EQ(web.asked.size(), 1U);
  // The answer does not name i2. The provider terminates i2 by a second call while i2 is listed.
  answers[target] = answered(200, R"j({"data": {"terminated_instances": [{"id": "i1"}]}})j");
  answers["GET /api/v1/instances"] = instances({{"i2", name}});
  web.asked.clear();
  const Status lacking = provider->end(web, two);
  ASSERT_FALSE(lacking);
  EXPECT_NE(lacking.error().message.find("i2"), std::string::npos);
  EXPECT_EQ(body_of(2)["instance_ids"], nlohmann::json({"i2"}));
  // A machine that is already gone is not an error.
  answers[target] = answered(404, R"j({"error": {"code": "global/object-does-not-exist"}})j");
  answers["GET /api/v1/instances"] = instances({});
  EXPECT_TRUE(provider->end(web, two));
  answers[target] = answered(401, R"j({"error": {"code": "global/invalid-api-key"}})j");
  EXPECT_EQ(code_of(provider->end(web, two)), Errc::denied);
}

TEST_F(LambdaProviderTest, ASilentProviderIsALine) {
  key.clear();
  auto catalog = provider->offers(web, {.gpu = *parse_gpu_wish("A10")});
  ASSERT_EQ(catalog.silent.size(), 1U);
  EXPECT_TRUE(catalog.silent[0].no_keys);
  EXPECT_TRUE(web.asked.empty());
  EXPECT_EQ(provider->check(web)[0].kind, Finding::Kind::bad);
  key = "wrong_key";
  answers["GET /api/v1/instance-types"] = answered(401, R"j({"error": {"code":
    "global/invalid-api-key", "message": "wrong_key is not valid"}})j");
  catalog = provider->offers(web, {.gpu = *parse_gpu_wish("A10")});
  ASSERT_EQ(catalog.silent.size(), 1U);
  EXPECT_FALSE(catalog.silent[0].no_keys);
  EXPECT_EQ(catalog.silent[0].why.find("wrong_key"), std::string::npos);
}

TEST_F(LambdaProviderTest, StockIsKeptForHalfAMinute) {
  answers["GET /api/v1/instance-types"] = answered(200, R"j({"data": {"gpu_1x_a10": {
    "instance_type": {"name": "gpu_1x_a10", "gpu_description": "A10 (24 GB PCIe)",
      "price_cents_per_hour": 75, "specs": {
  "vcpus" : 30, "gpus" : 1}},
    "regions_with_capacity_available": [{"name": "us-east-1"}]
}
}
})j");
  const OfferQuery query{.gpu = *parse_gpu_wish("A10")};
  EXPECT_EQ(provider->offers(web, query).offers.at(0).price.source, Price::Source::live);
  web.now += 20'000;
  const auto kept = provider->offers(web, query);
  EXPECT_EQ(kept.offers.at(0).price.source, Price::Source::cached);
  EXPECT_EQ(kept.offers.at(0).price.as_of_ms, 1'800'000'000'000);
  EXPECT_EQ(web.asked.size(), 1U);
  web.now += 20'000;
  EXPECT_EQ(provider->offers(web, query).offers.at(0).price.source, Price::Source::live);
  OfferQuery fresh = query;
  fresh.fresh = true;
  EXPECT_EQ(provider->offers(web, fresh).offers.at(0).price.source, Price::Source::live);
  EXPECT_EQ(web.asked.size(), 3U);
  fresh.spot = true;
  EXPECT_EQ(provider->offers(web, fresh).silent.size(), 1U);
}

TEST_F(LambdaProviderTest, CleaningUpSparesWhatIsNotOurs) {
  answers["GET /api/v1/instances"] = instances({{"i1", name_of(spec, 1'800'000'000'000).text()}});
  ASSERT_TRUE(provider->clean(web));
  EXPECT_EQ(web.asked.size(), 1U);
  answers["GET /api/v1/instances"] = instances({{"i1", "theirs"}});
  answers["GET /api/v1/ssh-keys"] = answered(200, R"j({"data": [{"id": "k1", "name": "laptop"},
    {"id": "k2", "name": "lockstep-0123456789abcdef-7"}, {"id": "k3", "name": "lockstep-x"}]})j");
  answers["DELETE /api/v1/ssh-keys/k2"] = answered(200, R"j({"data": {}})j");
  ASSERT_TRUE(provider->clean(web));
  EXPECT_EQ(web.count("/ssh-keys/"), 1U);
}

}  // namespace
}  // namespace lockstep::cloud::lambda
