// Facts as JSON, and back.
#pragma once

#include "codec/json.h"
#include "host/facts.h"

#include <optional>
#include <string_view>

namespace lockstep::host {

nlohmann::ordered_json facts_json(const Facts& facts);
// Returns nullopt unless every member is there and of its type. Texts are bounded, but come as the
// host wrote them: print them through printable().
std::optional<Facts> parse_facts(const nlohmann::json& json);

}  // namespace lockstep::host
