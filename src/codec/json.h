// Reads JSON that others wrote, and prints JSON. Input is bounded in bytes, depth and number of
// values, and the work is linear in its bytes, so a peer can neither exhaust our stack nor hold
// up the loop. tools/check_floors.py refuses nlohmann's own parse() and dump() elsewhere in
// src/.
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

// Text that is no JSON or exceeds a limit gives a discarded value, for which is_object() and the
// like are false. Of members with the same name the last one counts. Never throws.
nlohmann::json parse_json(std::string_view text, const JsonLimits& limits = {});
// The same, but members stay in the order in which they came, for callers that print them again.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const JsonLimits& limits = {});

enum class JsonText { utf8, ascii };  // ascii: all else as \uXXXX, as Python prints it

// Bytes that are not UTF-8 are replaced. Printing recurses, so print only values that we made or
// that the parsers above bounded. indent -1: one line.
std::string print_json(const nlohmann::json& value, JsonText text = JsonText::utf8,
                       int indent = -1);
std::string print_json(const nlohmann::ordered_json& value, JsonText text = JsonText::utf8,
                       int indent = -1);

}  // namespace lockstep::codec
