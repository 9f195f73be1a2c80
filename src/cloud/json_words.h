// Members of services' answers, for use in names, addresses and messages: bounded and printable,
// whatever was sent. Pure.
#pragma once

#include "cloud/money.h"
#include "codec/json.h"

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cloud {

// As it stands in JSON: in quotes. For bodies that are put together as text, which is much less
// code than building a value.
std::string json_text(std::string_view text);

// null where it is missing.
const nlohmann::json& json_member(const nlohmann::json& object, const char* name);
// One printable line of at most 128 bytes; "" where there is none.
std::string word_member(const nlohmann::json& object, const char* name);
// Letters, digits, '-', '_' and '.' only, as can stand in a path; "" for all else.
std::string id_member(const nlohmann::json& object, const char* name);
// US dollars, as a number; nullopt: none, not above 0, or more than anything costs.
std::optional<Micros> dollars_member(const nlohmann::json& object, const char* name);
// A whole number between 0 and `most`; 0 where there is none.
int count_member(const nlohmann::json& object, const char* name, int most = 1 << 24);

}  // namespace lockstep::cloud
