// The table of ranks: as many columns as the width allows, the most telling ones first. Pure.
#pragma once

#include "top/job_rows.h"

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::top {

// For output that is not cut.
inline constexpr std::size_t kAnyWidth = 100'000;

struct TableText {
  std::string head = {};
  std::vector<std::string> lines = {};  // one for each line
};

// No line takes more than `width` columns. Blanks at the ends of lines are left out.
TableText table_of(const std::vector<Line>& lines, std::size_t width);

// "0-2, 5".
std::string ranks_text(const std::vector<int>& ranks);
// "all_reduce: step, train.py:88". columns: shorter forms are chosen where the whole does not fit.
std::string where_text(const looks::RankRow& row, std::size_t columns = kAnyWidth);
// "12s", "4m", "2h", "3d". "-": no output.
std::string age_text(std::int64_t ms);
std::string memory_text(std::int64_t bytes);  // "812M", "1.2G"

}  // namespace lockstep::top
