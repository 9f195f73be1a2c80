// Small pieces that Slurm's programs print in the same way.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// "(null)", "N/A", "None", "None assigned", "Unknown" and "n/a" are ways to say nothing.
std::string known_text(std::string_view field);

// "a|b|c|d" with most 3 -> "a", "b", "c|d".
std::vector<std::string> split_fields(std::string_view line, std::size_t most);

std::optional<int> small_number(std::string_view field);

}  // namespace lockstep::slurm
