// Reading Google's JSON: members that lie deep, numbers that come as texts, names at the ends of
// URLs. And writing it: texts in quotes.
#pragma once

#include "codec/json.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::cloud::gcp {

// "networkInterfaces/0/accessConfigs/0/natIP". null where something on the way is missing.
const nlohmann::json& at(const nlohmann::json& value, std::string_view path);
std::string text_at(const nlohmann::json& value, std::string_view path);  // else ""
// Of 64 bits they are texts, and limits have a fraction: "200", 16.0. Else 0.
std::int64_t number_at(const nlohmann::json& value, std::string_view path);

// "us-central1-a" of ".../zones/us-central1-a".
std::string last_part(std::string_view url);
// "us-central1" of "us-central1-a".
std::string region_of(std::string_view zone);

// As JSON, with quotes.
std::string json_text(std::string_view text);

}  // namespace lockstep::cloud::gcp
