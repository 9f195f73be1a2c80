#include "cloud/lambda/lambda_answers.h"

#include "base/text.h"
#include "cloud/json_words.h"
#include "cloud/lambda/lambda_requests.h"
#include "cloud/machine_name.h"
#include "cloud/time_text.h"
#include "codec/json_members.h"

#include <algorithm>
#include <array>

namespace lockstep::cloud::lambda {
namespace {

using codec::integer_member;
using codec::text_member;
using Json = nlohmann::json;

constexpr Micros kMicrosPerCent = kDollar / 100;
// A price of 700 USD stands for "no price" in some catalogs.
constexpr std::int64_t kNoPriceCents = 70'000;
std::string region_of(const Json& object) {
  return id_member(json_member(object, "region"), "name");
}

struct StateRow {
  std::string_view status;
  Machine::State state;
};
constexpr StateRow kStates[] = {
    {"booting", Machine::State::pending},     {"active", Machine::State::running},
    {"unhealthy", Machine::State::unhealthy}, {"terminating", Machine::State::ending},
    {"terminated", Machine::State::gone},     {"preempted", Machine::State::gone}};

void read_tags(const Json& instance, Machine& machine) {
  for (const Json& tag : json_member(instance, "tags")) {
    const std::string key = text_member(tag, "key");
    const std::string value = word_member(tag, "value");
    if (key == "lockstep:intent") machine.intent = value;
    if (key == "lockstep:owner") machine.owner = value;
    if (key == "lockstep:cluster") machine.cluster = value;
    if (key == "lockstep:ends") machine.ends_ms = parse_iso_time(value).value_or(0);
  }
}

Machine machine_of_instance(const Json& instance) {
  const Json& type = json_member(instance, "instance_type");
  const std::string status = word_member(instance, "status");
  Machine machine{.id = id_member(instance, "id"),
                  .name = word_member(instance, "name"),
                  .region = region_of(instance),
                  .type = id_member(type, "name"),
                  .address = word_member(instance, "ip"),
                  .user = "ubuntu",
                  .private_address = word_member(instance, "private_ip"),
                  .taken = status == "preempted",
                  .per_hour = std::clamp<std::int64_t>(integer_member(type, "price_cents_per_hour"),
                                                       0, kNoPriceCents) *
                              kMicrosPerCent};
  for (const StateRow& row : kStates)
    if (row.status == status) machine.state = row.state;
  if (machine.state != Machine::State::pending && machine.state != Machine::State::running)
    machine.why = status;
  // Read the name first and the tags after it: a tag wins over the name.
  (void)read_name(machine);
  read_tags(instance, machine);
  return machine;
}

std::vector<std::string> regions_with_room(const Json& item, const OfferQuery& query) {
  std::vector<std::string> regions;
  for (const Json& each : json_member(item, "regions_with_capacity_available")) {
    std::string region = id_member(each, "name");
    if (!region.empty() &&
        (query.regions.empty() ||
         std::find(query.regions.begin(), query.regions.end(), region) != query.regions.end()))
      regions.push_back(std::move(region));
  }
  return regions;
}

std::optional<Offer> offer_of_type(const Json& type, const Price& price) {
  const Json& specs = json_member(type, "specs");
  const std::int64_t cents = integer_member(type, "price_cents_per_hour");
  const int gpus = count_member(specs, "gpus");
  // The description has the exact GPU ("H100 (80 GB SXM5)"). The type's name is ambiguous.
  const Gpu* gpu = gpu_described(text_member(type, "gpu_description"));
  // Leave out types that cannot be compared: an unknown GPU, or an absurd number or price.
  if (gpu == nullptr || gpus < 1 || gpus > 64 || cents <= 0 || cents >= kNoPriceCents)
    return std::nullopt;
  Offer offer{.provider = "lambda",
              .region = {},
              .zone = {},
              .zone_id = {},
              .type = id_member(type, "name"),
              .gpu = gpu->name,
              .gpus = gpus,
              .gpu_memory_gb = gpu->memory_gb,
              .vcpus = count_member(specs, "vcpus"),
              .memory_gb = count_member(specs, "memory_gib"),
              .disk_gb = count_member(specs, "storage_gib"),
              .arch = gpu->arch,
              .price = price,
              .ending = Ending::with_guard};
  offer.price.per_hour = cents * kMicrosPerCent;
  return offer;
}

bool admits(const OfferQuery& query, const Offer& offer) {
  return query.gpu.admits(offer.gpu, offer.gpus);
}

}  // namespace

ServiceWords words_of(const Json& answer) {
  const Json& error = json_member(answer, "error");
  ServiceWords words{.code = text_member(error, "code"), .message = text_member(error, "message")};
  if (const std::string advice = text_member(error, "suggestion"); !advice.empty())
    words.message += " (" + advice + ")";
  return words;
}

std::span<const RefusalRow> refusal_rows() {
  // Branch on codes only: Lambda's messages are free text. Lambda has no zones, so "next zone"
  // means the next region or offer.
  static constexpr auto kRows = std::to_array<RefusalRow>({
      {"instance-operations/launch/insufficient-capacity", Refusal::next_zone},
      {"instance-operations/launch/file-system-in-wrong-region", Refusal::stop},
      {"global/quota-exceeded", Refusal::provider_out},
      {"global/invalid-api-key", Refusal::provider_out},
      {"global/account-inactive", Refusal::provider_out},
      {"global/invalid-address", Refusal::provider_out},
      {"global/invalid-parameters", Refusal::stop},
      {"global/object-does-not-exist", Refusal::stop},
      {"provider/*", Refusal::next_zone},
      // Rows for failures that outlasted all retries.
      {"unreachable", Refusal::provider_out},
      {"http-4*", Refusal::provider_out},
      {"http-3*", Refusal::provider_out},
  });
  return kRows;
}

const Json& data_of(const Json& answer) {
  return json_member(answer, "data");
}

std::vector<Offer> offers_of(const Json& answer, const OfferQuery& query, const Price& price) {
  std::vector<Offer> offers;
  for (const Json& item : data_of(answer)) {
    auto offer = offer_of_type(json_member(item, "instance_type"), price);
    if (!offer || !admits(query, *offer)) continue;
    const auto regions = regions_with_room(item, query);
    offer->stock = regions.empty() ? Stock::none : Stock::in_stock;
    for (const std::string& region : regions) {
      offer->region = region;
      offers.push_back(*offer);
    }
    // Show a type that is sold out everywhere, too.
    if (regions.empty() && query.regions.empty()) offers.push_back(*offer);
  }
  return offers;
}

std::vector<Machine> machines_of(const Json& answer) {
  std::vector<Machine> machines;
  for (const Json& instance : data_of(answer)) {
    Machine machine = machine_of_instance(instance);
    // Machines without an intent are not of Lockstep. Never list or touch them.
    if (!machine.id.empty() && !machine.intent.empty()) machines.push_back(std::move(machine));
  }
  return machines;
}

std::string family_of(const Json& answer, std::string_view region, std::string_view arch,
                      bool legacy) {
  std::string newest;
  for (const Json& image : data_of(answer)) {
    const std::string family = word_member(image, "family");
    if (!family.starts_with(legacy ? "lambda-stack-legacy-" : "lambda-stack-") ||
        (!legacy && family.starts_with("lambda-stack-legacy")) || region_of(image) != region ||
        text_member(image, "architecture") != arch)
      continue;
    newest = std::max(newest, family);  // the release is at the end: -22-04, -24-04
  }
  return newest;
}

std::string registered_name(const Json& answer, std::string_view public_key) {
  for (const Json& key : data_of(answer))
    // Compare the key itself: the account may have the key under any name.
    if (key_without_comment(text_member(key, "public_key")) == key_without_comment(public_key))
      return text_member(key, "name");
  return {};
}

std::optional<Ruleset> ruleset_of(const Json& answer, std::string_view name,
                                  std::string_view region) {
  for (const Json& set : data_of(answer)) {
    if (text_member(set, "name") != name || region_of(set) != region) continue;
    Ruleset found{.id = id_member(set, "id")};
    for (const Json& rule : json_member(set, "rules")) {
      found.networks.push_back(text_member(rule, "source_network"));
      // A person may have changed the rules in the console.
      if (text_member(rule, "protocol") != "tcp" || json_member(rule, "port_range") != Json{22, 22})
        found.only_ssh = false;
    }
    return found;
  }
  return std::nullopt;
}

std::vector<std::string> ids_named(const Json& answer, std::string_view start) {
  std::vector<std::string> ids;
  for (const Json& each : data_of(answer))
    if (text_member(each, "name").starts_with(start)) ids.push_back(id_member(each, "id"));
  return ids;
}

std::vector<std::string> terminated_ids(const Json& answer) {
  std::vector<std::string> ids;
  for (const Json& instance : json_member(data_of(answer), "terminated_instances"))
    ids.push_back(text_member(instance, "id"));
  return ids;
}

}  // namespace lockstep::cloud::lambda
