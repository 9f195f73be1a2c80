// Speaks to one provider for tests in Python: `cloud_tool PROVIDER`, then a line of JSON in for
// each line of JSON out. {"do": "offers", ...}: see kDoers. Keys and endpoints come from the
// environment, answers are kept in $CLOUD_TOOL_FOLDER.
#include "cloud/aws/provider.h"
#include "cloud/gcp/gcp.h"
#include "cloud/lambda/lambda.h"
#include "cloud/offer_json.h"
#include "cloud/runpod/runpod.h"
#include "codec/json_fields.h"
#include "codec/json_members.h"

#include <cstdlib>
#include <iostream>

namespace {

using namespace lockstep;
using namespace lockstep::cloud;
using Json = nlohmann::json;
using codec::integer_member;
using codec::text_member;
using codec::texts_member;

struct ProviderRow {
  const char* name;
  std::unique_ptr<Provider> (*make)(Ground);
};

constexpr ProviderRow kProviders[] = {
    {"aws", aws::make_provider},
    {"gcp", gcp::make_provider},
    {"lambda", cloud::lambda::make_provider},
    {"runpod", runpod::make_provider},
};

bool flag(const Json& given, const char* name) {
  return given.contains(name) && given[name].is_boolean() && given[name].get<bool>();
}

Json object_of(const Json& given, const char* name) {
  return given.contains(name) ? given[name] : Json::object();
}

LaunchSpec spec_of(const Json& given) {
  LaunchSpec spec;
  spec.intent = text_member(given, "intent");
  spec.owner = text_member(given, "owner");
  spec.cluster = text_member(given, "cluster");
  spec.attempt = given.value("attempt", 1);
  spec.node = given.value("node", 0);
  spec.count = given.value("count", 1);
  (void)lockstep::codec::read_fields(object_of(given, "offer"), spec.offer,
                                     lockstep::codec::kTolerantJson);
  spec.disk_gb = given.value("disk_gb", 0);
  spec.image = text_member(given, "image");
  spec.user_data = text_member(given, "user_data");
  spec.public_key = text_member(given, "public_key");
  spec.allow_from = text_member(given, "allow_from");
  spec.lifetime_s = integer_member(given, "lifetime_s");
  if (given.contains("max_spot")) spec.max_spot = integer_member(given, "max_spot");
  spec.wanted_ms = integer_member(given, "wanted_ms");
  spec.ends_ms = integer_member(given, "ends_ms");
  return spec;
}

LaunchCall call_of(const Json& given) {
  return {.region = text_member(given, "region"),
          .zone = text_member(given, "zone"),
          .token = text_member(given, "token"),
          .target = text_member(given, "target"),
          .body = text_member(given, "body")};
}

Json call_json(const LaunchCall& call) {
  return {{"region", call.region},
          {"zone", call.zone},
          {"token", call.token},
          {"target", call.target},
          {"body", call.body}};
}

Json outcome_json(const LaunchOutcome& outcome) {
  constexpr const char* kKinds[] = {"answered", "refused", "unknown"};
  constexpr const char* kRefusals[] = {"next_zone", "next_region", "provider_out",
                                       "spot_out",  "stop",        "unknown"};
  return {{"kind", kKinds[static_cast<int>(outcome.kind)]},
          {"ids", outcome.ids},
          {"refusal", outcome.kind == LaunchOutcome::Kind::refused
                          ? kRefusals[static_cast<int>(outcome.refusal)]
                          : ""},
          {"code", outcome.code},
          {"message", outcome.message},
          {"zones_to_try", outcome.zones_to_try}};
}

Json machine_json(const Machine& machine) {
  constexpr const char* kStates[] = {"pending", "running", "unhealthy",
                                     "ending",  "stopped", "gone"};
  return {{"id", machine.id},
          {"name", machine.name},
          {"region", machine.region},
          {"zone", machine.zone},
          {"type", machine.type},
          {"state", kStates[static_cast<int>(machine.state)]},
          {"address", machine.address},
          {"port", machine.port},
          {"user", machine.user},
          {"private_address", machine.private_address},
          {"launched_ms", machine.launched_ms},
          {"why", machine.why},
          {"taken", machine.taken},
          {"no_room", machine.no_room},
          {"intent", machine.intent},
          {"owner", machine.owner},
          {"cluster", machine.cluster},
          {"ends_ms", machine.ends_ms},
          {"per_hour", machine.per_hour},
          {"node", machine.node}};
}

Json silence_json(const NoAnswer& silence) {
  return {{"provider", silence.provider},
          {"region", silence.region},
          {"why", silence.why},
          {"no_keys", silence.no_keys}};
}

Json error_json(const Error& error) {
  return {{"error", error.message}, {"hint", error.hint}};
}

Json status_json(const Status& status) {
  return status ? Json{{"ok", true}} : error_json(status.error());
}

Json do_keys(Provider& provider, Web&, const Json&) {
  return status_json(provider.keys());
}

Json do_account(Provider& provider, Web& web, const Json&) {
  const auto account = provider.account(web);
  return account ? Json{{"account", *account}} : error_json(account.error());
}

Json do_offers(Provider& provider, Web& web, const Json& given) {
  OfferQuery query{.gpu = {}, .spot = flag(given, "spot"), .fresh = flag(given, "fresh")};
  query.regions = texts_member(given, "regions");
  if (const std::string text = text_member(given, "gpu"); !text.empty()) {
    auto wish = parse_gpu_wish(text);
    if (!wish) return error_json(wish.error());
    query.gpu = std::move(*wish);
    query.gpu.at_least = flag(given, "at_least");
  }
  const Catalog catalog = provider.offers(web, query);
  Json made{{"offers", Json::array()}, {"silent", Json::array()}};
  for (const Offer& offer : catalog.offers)
    made["offers"].push_back(offer_json(offer));
  for (const NoAnswer& silence : catalog.silent)
    made["silent"].push_back(silence_json(silence));
  return made;
}

Json do_prepare(Provider& provider, Web& web, const Json& given) {
  const auto call = provider.prepare(web, spec_of(object_of(given, "spec")));
  return call ? Json{{"call", call_json(*call)}} : Json{{"outcome", outcome_json(call.error())}};
}

Json do_launch(Provider& provider, Web& web, const Json& given) {
  const LaunchSpec spec = spec_of(object_of(given, "spec"));
  LaunchCall call = call_of(object_of(given, "call"));
  if (!given.contains("call")) {
    auto prepared = provider.prepare(web, spec);
    if (!prepared) return {{"outcome", outcome_json(prepared.error())}};
    call = std::move(*prepared);
  }
  return {{"call", call_json(call)}, {"outcome", outcome_json(provider.launch(web, spec, call))}};
}

Json do_resolve(Provider& provider, Web& web, const Json& given) {
  const std::int64_t asked_ms = web.now_ms() - integer_member(given, "age_ms");
  return {{"outcome", outcome_json(provider.resolve(web, spec_of(object_of(given, "spec")),
                                                    call_of(object_of(given, "call")), asked_ms))}};
}

Json do_list(Provider& provider, Web& web, const Json& given) {
  const auto listing = provider.list(web, {.regions = texts_member(given, "regions"),
                                           .intent = text_member(given, "intent"),
                                           .owner = text_member(given, "owner")});
  if (!listing) return error_json(listing.error());
  Json made{{"machines", Json::array()}, {"unheard", Json::array()}};
  for (const Machine& machine : listing->machines)
    made["machines"].push_back(machine_json(machine));
  for (const NoAnswer& silence : listing->unheard)
    made["unheard"].push_back(silence_json(silence));
  return made;
}

Machine machine_of(const Json& json) {
  return {.id = text_member(json, "id"),
          .name = text_member(json, "name"),
          .region = text_member(json, "region"),
          .zone = text_member(json, "zone")};
}

Json do_end(Provider& provider, Web& web, const Json& given) {
  std::vector<Machine> machines;
  for (const Json& each : given.value("machines", Json::array()))
    machines.push_back(machine_of(each));
  return status_json(provider.end(web, machines));
}

Json do_host_key(Provider& provider, Web& web, const Json& given) {
  const auto key = provider.host_key(web, machine_of(given.value("machine", Json::object())));
  if (!key) return error_json(key.error());
  return {{"key", *key}};
}

Json do_allow(Provider& provider, Web& web, const Json& given) {
  return status_json(provider.allow(web, text_member(given, "region"), text_member(given, "cidr")));
}

Json do_check(Provider& provider, Web& web, const Json&) {
  constexpr const char* kKinds[] = {"good", "note", "bad"};
  Json made = Json::array();
  for (const Finding& finding : provider.check(web))
    made.push_back({{"kind", kKinds[static_cast<int>(finding.kind)]},
                    {"what", finding.what},
                    {"hint", finding.hint}});
  return {{"findings", made}};
}

Json do_clean(Provider& provider, Web& web, const Json&) {
  return status_json(provider.clean(web));
}

struct DoRow {
  const char* name;
  Json (*run)(Provider&, Web&, const Json&);
};

constexpr DoRow kDoers[] = {
    {"keys", do_keys},  // {}
    {"account", do_account},
    {"offers", do_offers},      // {"gpu", "spot", "regions", "fresh", "at_least"}
    {"prepare", do_prepare},    // {"spec"}
    {"launch", do_launch},      // {"spec"}: prepared and launched; with {"call"}: that call
    {"resolve", do_resolve},    // {"spec", "call", "age_ms"}
    {"list", do_list},          // {"regions", "intent", "owner"}
    {"end", do_end},            // {"machines": [{"id", "region"}]}
    {"host_key", do_host_key},  // {"machine": {"id", "zone"}}
    {"allow", do_allow},        // {"region", "cidr"}
    {"check", do_check},
    {"clean", do_clean},
};

Json answer_to(const std::string& line, Provider& provider, Web& web) {
  const Json given = codec::parse_json(line);
  if (!given.is_object()) return {{"error", "no JSON object"}};
  const std::string name = text_member(given, "do");
  for (const DoRow& row : kDoers)
    if (name == row.name) return row.run(provider, web, given);
  return {{"error", "nothing to do named " + name}};
}

Ground make_ground() {
  const char* folder = getenv("CLOUD_TOOL_FOLDER");
  const char* home = getenv("HOME");
  Ground ground{.env = [](std::string_view name) -> std::optional<std::string> {
                  const char* value = getenv(std::string(name).c_str());
                  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
                },
                .home = home == nullptr ? "/" : home,
                .cache = {},
                .state = {},
                .owner = "owner00000000001"};
  if (folder != nullptr) {
    ground.cache = std::string(folder) + "/cache";
    ground.state = std::string(folder) + "/state";
  }
  return ground;
}

}  // namespace

int main(int argc, char** argv) {
  const auto web = open_web({});
  if (argc != 2 || !web) return 2;
  for (const ProviderRow& row : kProviders) {
    if (std::string_view(row.name) != argv[1]) continue;
    const auto provider = row.make(make_ground());
    for (std::string line; std::getline(std::cin, line);)
      std::cout << codec::print_json(answer_to(line, *provider, **web)) << std::endl;
    return 0;
  }
  return 2;
}
