// Rows of text in columns as wide as their widest entry.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace lockstep {

// Formats one line per row, with two blanks between columns and none at the end of a line.
template <std::size_t columns>
std::string columns_text(const std::vector<std::array<std::string, columns>>& rows) {
  std::array<std::size_t, columns> widths{};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < columns; ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < columns; ++i)
      line.append(row[i]).append(widths[i] - row[i].size() + 2, ' ');
    text.append(line, 0, line.find_last_not_of(' ') + 1).append("\n");
  }
  return text;
}

}  // namespace lockstep
