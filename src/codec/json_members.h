// Reads single members of a JSON object that may be missing or of another type, such as a peer's
// answer. All functions expect an object, and none of them fails. To read a whole struct, and to
// name the member at fault, use json_fields.h.
#pragma once

#include "codec/json.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::codec {

// Returns the member's text; "" if the member is missing or not a string.
std::string text_member(const nlohmann::json& object, const char* name);
// Returns the member's number; 0 if the member is missing or not an integer.
std::int64_t integer_member(const nlohmann::json& object, const char* name);
// Returns the member's value; false if the member is missing or not a boolean.
template <class Json>
bool flag_member(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_boolean() && at->template get<bool>();
}
// Returns the strings of a list, without elements of other types; empty if the member is missing or
// not a list.
std::vector<std::string> texts_member(const nlohmann::json& object, const char* name);

}  // namespace lockstep::codec
