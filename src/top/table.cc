#include "top/table.h"

#include "base/number_ranges.h"
#include "top/text_width.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>

namespace lockstep::top {
namespace {

using looks::RankRow;

constexpr std::size_t kMostRanges = 16;

std::string share_text(std::optional<double> share) {
  return share ? fmt::format("{:.0f}%", 100 * *share) : "-";
}

std::string nodes_text(const Line& line) {
  return line.nodes.size() == 1 ? line.nodes.front() : fmt::format("{} nodes", line.nodes.size());
}

std::string step_text(const RankRow& row) {
  if (!row.step) return "-";
  return fmt::format("{}{}", row.step_guessed ? "~" : "", *row.step);
}

// A cut list would name the wrong ranks.
std::string short_ranks(const std::vector<int>& ranks, std::size_t columns) {
  std::string text = ranks_text(ranks);
  return text.size() <= columns ? text : fmt::format("{} ranks", ranks.size());
}

struct Column {
  std::string_view title;
  Side side;
  std::size_t least;  // columns, where there is no room for the longest text
  std::size_t most;
  std::function<std::string(const Line&)> text;
  // Returns whether the column says anything. Empty: always.
  std::function<bool(const std::vector<Line>&)> is_wanted = {};
};

bool has_several_nodes(const std::vector<Line>& lines) {
  return std::any_of(lines.begin(), lines.end(), [&](const Line& line) {
    return line.nodes.size() > 1 || line.nodes.front() != lines.front().nodes.front();
  });
}

template <class Fact>
std::function<bool(const std::vector<Line>&)> if_any(Fact fact) {
  return [fact](const std::vector<Line>& lines) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const Line& line) { return fact(line.row); });
  };
}

// In the order of the table.
enum Which : std::size_t {
  kRanks,
  kNode,
  kState,
  kWhere,
  kWait,
  kInput,
  kCpu,
  kMemory,
  kGpu,
  kGpuMemory,
  kLoaders,
  kAge,
  kStep,
  kSpeed,
  kText
};
constexpr std::size_t kColumns = kText + 1;
// The order in which columns get their room on a narrow terminal.
constexpr std::array<Which, kColumns> kFirst = {kRanks, kState, kWhere, kWait,      kAge,
                                                kGpu,   kCpu,   kNode,  kGpuMemory, kMemory,
                                                kStep,  kSpeed, kInput, kLoaders,   kText};

const std::array<Column, kColumns>& columns() {
  static const std::array<Column, kColumns> all = {{
      {"RANK", Side::left, 8, 14, [](const Line& line) { return ranks_text(line.ranks); }},
      {"NODE", Side::left, 6, 16, nodes_text, has_several_nodes},
      {"STATE", Side::left, 8, 8, [](const Line& line) { return line.row.state; }},
      {"WHERE", Side::left, 22, 44, [](const Line& line) { return where_text(line.row); }},
      {"WAIT", Side::right, 4, 4,
       [](const Line& line) { return share_text(line.row.waiting_share); },
       if_any([](const RankRow& row) { return row.waiting_share.has_value(); })},
      {"INPUT", Side::right, 5, 5,
       [](const Line& line) { return share_text(line.row.input_share); },
       if_any([](const RankRow& row) { return row.input_share.value_or(0) > 0; })},
      {"CPU", Side::right, 5, 6,
       [](const Line& line) {
         return line.row.pid == 0 ? "-" : fmt::format("{:.2f}", line.row.cpu);
       }},
      {"MEM", Side::right, 5, 6,
       [](const Line& line) {
         return line.row.pid == 0 ? "-" : memory_text(line.row.memory_bytes);
       }},
      {"GPU", Side::right, 4, 4, [](const Line& line) { return share_text(line.row.gpu_share); },
       if_any([](const RankRow& row) { return row.gpu_share.has_value(); })},
      {"GPUMEM", Side::right, 6, 6,
       [](const Line& line) {
         return line.row.gpu_memory_bytes ? memory_text(*line.row.gpu_memory_bytes) : "-";
       },
       if_any([](const RankRow& row) { return row.gpu_memory_bytes.has_value(); })},
      {"LOADERS", Side::right, 7, 7,
       [](const Line& line) { return line.row.pid == 0 ? "-" : std::to_string(line.row.loaders); },
       if_any([](const RankRow& row) { return row.loaders > 0; })},
      {"OUT", Side::right, 4, 4, [](const Line& line) { return age_text(line.row.output_age_ms); },
       if_any([](const RankRow& row) { return row.output_age_ms >= 0; })},
      {"STEP", Side::right, 5, 10, [](const Line& line) { return step_text(line.row); },
       if_any([](const RankRow& row) { return row.step.has_value(); })},
      {"STEPS/S", Side::right, 7, 8,
       [](const Line& line) {
         return line.row.steps_per_s ? fmt::format("{:.2f}", *line.row.steps_per_s) : "-";
       },
       if_any([](const RankRow& row) { return row.steps_per_s.has_value(); })},
      {"LAST LINE", Side::left, 16, kAnyWidth, [](const Line& line) { return line.row.last_line; },
       if_any([](const RankRow& row) { return !row.last_line.empty(); })},
  }};
  return all;
}

using Widths = std::array<std::size_t, kColumns>;  // 0: not shown

std::size_t longest(const Column& column, const std::vector<Line>& lines) {
  std::size_t longest = columns_of(column.title);
  for (const Line& line : lines)
    longest = std::max(longest, columns_of(column.text(line)));
  return longest;
}

// Gives each column its least width while there is room, and then the rest to those that need more.
Widths widths_for(const std::vector<Line>& lines, std::size_t width) {
  Widths widths{};
  std::size_t left = width + 1;  // no blank stands before the first column
  const auto& all = columns();
  for (const Which which : kFirst) {
    const Column& column = all[which];
    if (column.is_wanted && (lines.empty() || !column.is_wanted(lines))) continue;
    const std::size_t least = std::min(column.least, longest(column, lines));
    // A line without ranks says nothing, so the ranks stand on any terminal.
    if (left < least + 1 && which != kRanks) continue;
    widths[which] = std::min(least, left - 1);
    left -= widths[which] + 1;
  }
  for (const Which which : kFirst) {
    if (widths[which] == 0) continue;
    const std::size_t wanted = std::min(all[which].most, longest(all[which], lines));
    const std::size_t more = wanted > widths[which] ? wanted - widths[which] : 0;
    widths[which] += std::min(more, left);
    left -= std::min(more, left);
  }
  return widths;
}

template <class Text>
std::string table_row(const Widths& widths, Text text) {
  std::string row;
  const auto& all = columns();
  for (std::size_t i = 0; i < kColumns; ++i) {
    if (widths[i] == 0) continue;
    if (!row.empty()) row += ' ';
    row += fitted(text(i, all[i]), widths[i], all[i].side);
  }
  return row.substr(0, row.find_last_not_of(' ') + 1);
}

}  // namespace

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranges_text(ranks, kMostRanges);
  std::erase(text, ' ');
  return text;
}

std::string where_text(const RankRow& row, std::size_t columns) {
  const std::string doing = row.doing.empty() || row.where.empty()
                                ? row.doing + row.where
                                : fmt::format("{}: {}", row.doing, row.where);
  const std::size_t comma = row.where.rfind(", ");
  const std::string line = comma == std::string::npos ? row.where : row.where.substr(comma + 2);
  for (const std::string& text : {doing, row.where})
    if (!text.empty() && columns_of(text) <= columns) return text;
  // The number of the line says more than the name of the function.
  return line.empty() ? (doing.empty() ? "-" : doing) : line;
}

std::string age_text(std::int64_t ms) {
  if (ms < 0) return "-";
  const std::int64_t seconds = ms / 1000;
  if (seconds < 100) return fmt::format("{}s", seconds);
  if (seconds < std::int64_t{100} * 60) return fmt::format("{}m", seconds / 60);
  if (seconds < std::int64_t{100} * 3600) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", std::min<std::int64_t>(seconds / 86'400, 999));
}

std::string memory_text(std::int64_t bytes) {
  constexpr std::array<char, 5> kUnits = {'K', 'M', 'G', 'T', 'P'};
  double number = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 999.7K would round to four digits, which the column has no room for.
  for (; number >= 999.5 && unit + 1 < kUnits.size(); ++unit)
    number /= 1024;
  return number < 9.95 && unit > 1 ? fmt::format("{:.1f}{}", number, kUnits[unit])
                                   : fmt::format("{:.0f}{}", number, kUnits[unit]);
}

TableText table_of(const std::vector<Line>& lines, std::size_t width) {
  const Widths widths = widths_for(lines, width);
  TableText table;
  table.head = table_row(
      widths, [](std::size_t /*i*/, const Column& column) { return std::string(column.title); });
  for (const Line& line : lines)
    table.lines.push_back(table_row(widths, [&](std::size_t i, const Column& column) {
      if (i == kRanks) return short_ranks(line.ranks, widths[i]);
      return i == kWhere ? where_text(line.row, widths[i]) : column.text(line);
    }));
  return table;
}

}  // namespace lockstep::top
