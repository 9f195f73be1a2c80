// Members of an object that may be missing, or of another kind than they should be.
#pragma once

#include "codec/json.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::codec {

std::string text_member(const nlohmann::json& object, const char* name);      // else ""
std::int64_t integer_member(const nlohmann::json& object, const char* name);  // else 0
// Those of a list that are texts; else none.
std::vector<std::string> texts_member(const nlohmann::json& object, const char* name);

}  // namespace lockstep::codec
