// Members of providers' JSON answers, made safe for names, addresses and messages: bounded and
// printable, whatever the provider sent. Pure.
#pragma once

#include "cloud/money.h"
#include "codec/json.h"

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cloud {

// Returns the text as a JSON string with quotes. Providers' folders format request bodies as text,
// which compiles to much less code than building a JSON value.
std::string json_text(std::string_view text);

// Returns a member; null where it is missing.
const nlohmann::json& json_member(const nlohmann::json& object, const char* name);
// Returns one printable line of at most 128 bytes; "" where it is missing or not a text.
std::string word_member(const nlohmann::json& object, const char* name);
// Returns a text of letters, digits, '-', '_' and '.' only, which is safe in a path; else "".
std::string id_member(const nlohmann::json& object, const char* name);
// Returns a number of US dollars; nullopt: missing, not above 0, or more than any machine costs.
std::optional<Micros> dollars_member(const nlohmann::json& object, const char* name);
// Returns a whole number, moved into 0 to `most`; 0 where it is missing.
int count_member(const nlohmann::json& object, const char* name, int most = 1 << 24);

}  // namespace lockstep::cloud
