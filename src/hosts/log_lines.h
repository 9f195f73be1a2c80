// Prefixes of ranks, and lines of a job's output for programs: one JSON object per line. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::hosts {

// The prefix of a rank's lines: the value of --log-line-prefix-template, and the result for one
// rank.
inline constexpr const char* kRankTemplate = "[rank${rank}]: ";
std::string rank_prefix(std::int64_t rank);
// Removes the prefix of a rank from the line and returns the rank. nullopt: the line has no such
// prefix and stays unchanged.
std::optional<std::int64_t> take_rank(std::string_view& line);

// Returns the beginning of the object, the same for all lines of one output of a node.
// log_line_rest() completes the object.
std::string log_line_head(std::string_view node, std::string_view stream);
// Returns the rest of the object and a line end. A line without an end is marked as cut: more of
// the line may follow in the next object. If the line is not UTF-8, wrong bytes are replaced in
// "text", and "text_base64" has the exact bytes.
std::string log_line_rest(std::string_view line);

}  // namespace lockstep::hosts
