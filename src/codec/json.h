// The one way in for JSON that others wrote, and the one way out. What is read is bounded in bytes,
// depth and number of values, and the work is linear in the bytes, so a peer can neither choose our
// stack nor hold up the loop. tools/check_floors.py refuses nlohmann's own parse() and dump()
// elsewhere in src/.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::codec {

struct JsonLimits {
  std::size_t bytes = 1U << 20;
  std::size_t depth = 64;  // arrays and objects inside one another; printers and copies recurse
  std::size_t members = 128U << 10;  // of one array or object
  std::size_t values = 256U << 10;   // in all
};

// A discarded value, for which every is_object() and the like is false, where the text is no JSON
// or is more than the limits allow. Of members with the same name the last counts. Never throws.
nlohmann::json parse_json(std::string_view text, const JsonLimits& limits = {});
// The same, for those who print it again: members stay in the order in which they came.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const JsonLimits& limits = {});

enum class JsonText { utf8, ascii };  // ascii: everything else as \uXXXX, as Python prints it

// Bytes that are no UTF-8 are replaced. Recurses: only for values of our own making or from above.
// indent -1: one line.
std::string print_json(const nlohmann::json& value, JsonText text = JsonText::utf8,
                       int indent = -1);
std::string print_json(const nlohmann::ordered_json& value, JsonText text = JsonText::utf8,
                       int indent = -1);

}  // namespace lockstep::codec
