// Reads JSON of peers, and prints JSON. Bytes, depth and number of values are bounded, and the work
// grows linearly with the bytes. A peer can therefore neither exhaust our stack nor block the loop.
// tools/check_floors.py refuses nlohmann's own parse() and dump() elsewhere in src/.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::codec {

struct JsonLimits {
  std::size_t bytes = 1U << 20;
  std::size_t depth = 64;            // of arrays and objects: printing and copying recurse
  std::size_t members = 128U << 10;  // of one array or object
  std::size_t values = 256U << 10;   // in all
};

// Parses JSON. Invalid JSON, or JSON beyond a limit, gives a discarded value, for which is_object()
// and the like are false. If several members have the same name, the last one counts. Never throws.
nlohmann::json parse_json(std::string_view text, const JsonLimits& limits = {});
// Parses like parse_json(), but keeps the order of members, for callers that print the value again.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const JsonLimits& limits = {});

enum class JsonText { utf8, ascii };  // ascii: all else as \uXXXX, as Python prints it

// Prints JSON. Replaces bytes that are not UTF-8. Printing recurses, so print only values made by
// us or bounded by the parsers above. indent -1: a single line.
std::string print_json(const nlohmann::json& value, JsonText text = JsonText::utf8,
                       int indent = -1);
std::string print_json(const nlohmann::ordered_json& value, JsonText text = JsonText::utf8,
                       int indent = -1);

}  // namespace lockstep::codec
