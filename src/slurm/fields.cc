#include "slurm/fields.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace lockstep::slurm {

std::string known_text(std::string_view field) {
  constexpr std::array<std::string_view, 6> kNothing = {"(null)",        "N/A",     "None",
                                                        "None assigned", "Unknown", "n/a"};
  field = strip(field);
  const bool nothing = std::find(kNothing.begin(), kNothing.end(), field) != kNothing.end();
  return nothing ? std::string() : std::string(field);
}

std::vector<std::string> split_fields(std::string_view line, std::size_t most) {
  std::vector<std::string> fields;
  while (fields.size() + 1 < most) {
    const std::size_t end = line.find('|');
    if (end == std::string_view::npos) break;
    fields.emplace_back(line.substr(0, end));
    line.remove_prefix(end + 1);
  }
  // The last field keeps its separators: job names may contain '|'.
  fields.emplace_back(line);
  return fields;
}

std::optional<int> small_number(std::string_view field) {
  const auto number = parse_int(field);
  if (!number || *number < 0 || *number > INT32_MAX) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace lockstep::slurm
