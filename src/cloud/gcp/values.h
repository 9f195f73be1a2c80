// Reading Google's JSON: members that lie deep, numbers that come as texts, names at the ends of
// URLs. And writing it: texts in quotes.
#pragma once

#include "codec/json.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::gcp {

// "networkInterfaces/0/accessConfigs/0/natIP". null where something on the way is missing.
const nlohmann::json& at(const nlohmann::json& value, std::string_view path);
std::string text_at(const nlohmann::json& value, std::string_view path);  // else ""
// Of 64 bits they are texts, and limits have a fraction: "200", 16.0. Else 0.
std::int64_t number_at(const nlohmann::json& value, std::string_view path);

// What a list has; nothing where there is none.
std::vector<const nlohmann::json*> items_at(const nlohmann::json& value, std::string_view path);
// Those that are texts.
std::vector<std::string> texts_at(const nlohmann::json& value, std::string_view path);

// What an aggregated list has, zone by zone; `member` is "machineTypes".
struct InZone {
  std::string zone;
  const nlohmann::json* item = nullptr;
};
std::vector<InZone> items_in_zones(const nlohmann::json& page, std::string_view member);
// Zones of it that were not heard: what they have is unknown, not nothing.
std::vector<std::string> unheard_zones(const nlohmann::json& page);

// "us-central1-a" of ".../zones/us-central1-a".
std::string last_part(std::string_view url);
// "us-central1" of "us-central1-a".
std::string region_of(std::string_view zone);

// As JSON, with quotes.
std::string json_text(std::string_view text);

}  // namespace lockstep::cloud::gcp
