// Facts as JSON, and back.
#pragma once

#include "codec/json.h"
#include "host/facts.h"

#include <optional>
#include <string_view>

namespace lockstep::host {

nlohmann::ordered_json facts_json(const Facts& facts);
// nullopt: it is no such JSON; every member must be there, and of its type. Texts are bounded, and
// shown to people only as printable() has them.
std::optional<Facts> parse_facts(const nlohmann::ordered_json& json);

}  // namespace lockstep::host
