#include "cloud/lambda/lambda_requests.h"

#include "base/fnv.h"
#include "base/text.h"
#include "cloud/json_words.h"
#include "cloud/time_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::cloud::lambda {
namespace {

// Lambda's limit for the value of a tag.
constexpr std::size_t kMostOfTag = 128;

// An id has at least 32 hex digits. Any other text is a family.
bool is_image_id(std::string_view image) {
  return image.size() >= 32 && image.find_first_not_of("0123456789abcdef-") == std::string::npos;
}

// Keys of tags must be lower case, with dashes and colons only.
std::string tags_of(const LaunchSpec& spec) {
  std::string tags;
  const auto add = [&](std::string_view key, std::string_view value) {
    if (!value.empty())
      tags += fmt::format(R"({}{{"key":"lockstep:{}","value":{}}})", tags.empty() ? "" : ",", key,
                          json_text(value.substr(0, kMostOfTag)));
  };
  add("intent", spec.intent);
  add("owner", spec.owner);
  add("cluster", spec.cluster);
  if (spec.ends_ms > 0) add("ends", iso_time(spec.ends_ms));
  return tags;
}

}  // namespace

std::string launch_body(const LaunchSpec& spec, const LaunchParts& parts) {
  std::string body = fmt::format(
      R"({{"region_name":{},"instance_type_name":{},"ssh_key_names":[{}],"name":{},)"
      R"("user_data":{},"tags":[{}])",
      json_text(spec.offer.region), json_text(spec.offer.type), json_text(parts.key_name),
      json_text(parts.name), json_text(spec.user_data), tags_of(spec));
  if (!parts.image.empty())
    body += fmt::format(R"(,"image":{{"{}":{}}})", is_image_id(parts.image) ? "id" : "family",
                        json_text(parts.image));
  if (!parts.ruleset.empty())
    body += fmt::format(R"(,"firewall_rulesets":[{{"id":{}}}])", json_text(parts.ruleset));
  return body + "}";
}

std::string key_body(std::string_view name, std::string_view public_key) {
  return fmt::format(R"({{"name":{},"public_key":{}}})", json_text(name), json_text(public_key));
}

std::vector<std::string> networks_of(std::string_view cidr) {
  std::vector<std::string> networks;
  for (std::string& network : split(cidr, ','))
    if (std::find(networks.begin(), networks.end(), network) == networks.end())
      networks.push_back(std::move(network));
  return networks;
}

std::string ruleset_body(std::string_view name, std::string_view region, std::string_view cidr) {
  std::string rules;
  for (const std::string& network : networks_of(cidr))
    rules += fmt::format(R"({}{{"protocol":"tcp","port_range":[22,22],"source_network":{},)"
                         R"("description":"SSH for Lockstep"}})",
                         rules.empty() ? "" : ",", json_text(network));
  return fmt::format(
      R"({{"name":{},{}"rules":[{}]}})", json_text(name),
      region.empty() ? std::string() : fmt::format(R"("region":{},)", json_text(region)), rules);
}

std::string terminate_body(std::span<const std::string> ids) {
  std::string list;
  for (const std::string& id : ids)
    list += (list.empty() ? "" : ",") + json_text(id);
  return fmt::format(R"({{"instance_ids":[{}]}})", list);
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
