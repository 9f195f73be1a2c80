// Reads Google's JSON: nested members, numbers that come as texts, names at the ends of URLs.
#pragma once

#include "codec/json.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::gcp {

// Returns the member at a path like "networkInterfaces/0/accessConfigs/0/natIP"; null where a step
// of it is missing.
const nlohmann::json& at(const nlohmann::json& value, std::string_view path);
std::string text_at(const nlohmann::json& value, std::string_view path);  // else ""
// Returns a number, else 0. Google writes 64-bit numbers as texts ("200") and quotas as 16.0.
std::int64_t number_at(const nlohmann::json& value, std::string_view path);

// Returns the items of a list; none where the list is missing.
std::vector<const nlohmann::json*> items_at(const nlohmann::json& value, std::string_view path);
// Returns the items of a list that are texts.
std::vector<std::string> texts_at(const nlohmann::json& value, std::string_view path);

// An item of an aggregated list, and its zone. `member`: for example "machineTypes".
struct InZone {
  std::string zone;
  const nlohmann::json* item = nullptr;
};
std::vector<InZone> items_in_zones(const nlohmann::json& page, std::string_view member);
// Returns the zones that an aggregated list could not reach: their items are unknown, not none.
std::vector<std::string> unheard_zones(const nlohmann::json& page);

// Returns "us-central1-a" for ".../zones/us-central1-a".
std::string last_part(std::string_view url);
// Returns "us-central1" for "us-central1-a".
std::string region_of(std::string_view zone);

}  // namespace lockstep::cloud::gcp
