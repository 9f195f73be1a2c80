#include "cloud/lambda/lambda_requests.h"

#include "base/fnv.h"
#include "base/text.h"
#include "cloud/time_text.h"
#include "codec/json.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud::lambda {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostOfTag = 128;

bool is_image_id(std::string_view image) {
  return image.size() >= 32 && image.find_first_not_of("0123456789abcdef-") == std::string::npos;
}

Json tags_of(const LaunchSpec& spec) {
  Json tags = Json::array();
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) tags.push_back({{"key", key}, {"value", value.substr(0, kMostOfTag)}});
  };
  add("lockstep:intent", spec.intent);
  add("lockstep:owner", spec.owner);
  add("lockstep:cluster", spec.cluster);
  if (spec.ends_ms > 0) add("lockstep:ends", iso_time(spec.ends_ms));
  return tags;
}

}  // namespace

std::string launch_body(const LaunchSpec& spec, const LaunchParts& parts) {
  Json body = {{"region_name", spec.offer.region},  {"instance_type_name", spec.offer.type},
               {"ssh_key_names", {parts.key_name}}, {"name", parts.name},
               {"user_data", spec.user_data},       {"tags", tags_of(spec)}};
  if (!parts.image.empty())
    body["image"] = {{is_image_id(parts.image) ? "id" : "family", parts.image}};
  if (!parts.ruleset.empty()) body["firewall_rulesets"] = {{{"id", parts.ruleset}}};
  return codec::print_json(body);
}

std::string key_body(std::string_view name, std::string_view public_key) {
  return codec::print_json(Json{{"name", name}, {"public_key", public_key}});
}

std::string ruleset_body(std::string_view name, std::string_view region, std::string_view cidr) {
  Json body = {{"name", name},
               {"rules",
                {{{"protocol", "tcp"},
                  {"port_range", {22, 22}},
                  {"source_network", cidr},
                  {"description", "SSH for Lockstep"}}}}};
  if (!region.empty()) body["region"] = region;
  return codec::print_json(body);
}

std::string terminate_body(std::span<const std::string> ids) {
  return codec::print_json(
      Json{{"instance_ids", std::vector<std::string>(ids.begin(), ids.end())}});
}

std::string ruleset_name(std::string_view owner) {
  return fmt::format("lockstep-{}", owner);
}

std::string key_name(std::string_view owner, std::string_view public_key) {
  return fmt::format("lockstep-{}-{:016x}", owner, fnv1a(key_without_comment(public_key)));
}

std::string_view key_without_comment(std::string_view public_key) {
  public_key = strip(public_key);
  const std::size_t type = public_key.find(' ');
  if (type == std::string_view::npos) return public_key;
  return public_key.substr(0, public_key.find_first_of(" \t", type + 1));
}

}  // namespace lockstep::cloud::lambda
