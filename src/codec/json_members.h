// Members of a JSON object that may be missing or of the wrong type.
#pragma once

#include "codec/json.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::codec {

// "" if missing or not a string
std::string text_member(const nlohmann::json& object, const char* name);
// 0 if missing or not an integer
std::int64_t integer_member(const nlohmann::json& object, const char* name);
// false if missing or not a flag
template <class Json>
bool flag_member(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_boolean() && at->template get<bool>();
}
// Returns the strings of a list. Empty if the member is not a list.
std::vector<std::string> texts_member(const nlohmann::json& object, const char* name);

}  // namespace lockstep::codec
