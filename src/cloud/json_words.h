// Reads members of providers' JSON answers, made safe for names, addresses and messages: always
// bounded and printable. Pure.
#pragma once

#include "cloud/money.h"
#include "codec/json.h"

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cloud {

// Returns the text as a JSON string with quotes. Providers' folders format request bodies as text,
// since that compiles to much less code than building JSON values.
std::string json_text(std::string_view text);

// Returns a member. Null: the member is missing.
const nlohmann::json& json_member(const nlohmann::json& object, const char* name);
// Returns a printable line of at most 128 bytes. "": the member is missing or not a text.
std::string word_member(const nlohmann::json& object, const char* name);
// Returns a text of letters, digits, '-', '_' and '.' only, which is safe in a path. "": any other
// text.
std::string id_member(const nlohmann::json& object, const char* name);
// Returns a number of US dollars. nullopt: missing, not positive, or above the price of any
// machine.
std::optional<Micros> dollars_member(const nlohmann::json& object, const char* name);
// Returns a whole number, moved into 0 to `most`. 0: the member is missing.
int count_member(const nlohmann::json& object, const char* name, int most = 1 << 24);

}  // namespace lockstep::cloud
