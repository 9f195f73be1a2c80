// Parsers of small pieces that all of Slurm's programs print.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// Returns the field, or "" for Slurm's ways to say nothing: "(null)", "N/A", "None", "None
// assigned", "Unknown" and "n/a".
std::string known_text(std::string_view field);

// Splits at '|' into at most `most` parts: "a|b|c|d" with most 3 -> "a", "b", "c|d".
std::vector<std::string> split_fields(std::string_view line, std::size_t most);

// Returns a number from 0 to INT32_MAX; nullopt: anything else.
std::optional<int> small_number(std::string_view field);

}  // namespace lockstep::slurm
