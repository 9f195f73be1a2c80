// Lines of a job's output for programs: one JSON object each. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::hosts {

// The prefix of a rank's lines: the value of --log-line-prefix-template, and its result for a rank.
inline constexpr const char* kRankTemplate = "[rank${rank}]: ";
std::string rank_prefix(std::int64_t rank);
// Removes the rank's prefix from a line, if there is one.
std::optional<std::int64_t> take_rank(std::string_view& line);

// The object's beginning, the same for all lines of one output of a node.
std::string log_line_head(std::string_view node, std::string_view stream);
// Its rest, with an end of line. A line without an end of its own is marked as cut: more of it may
// follow in the next object. Bytes that are no UTF-8 are replaced in "text", and all of them are
// in "text_base64" then.
std::string log_line_rest(std::string_view line);

}  // namespace lockstep::hosts
