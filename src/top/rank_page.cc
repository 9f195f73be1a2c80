#include "top/rank_page.h"

#include "base/duration_text.h"
#include "base/text.h"
#include "top/table.h"

#include <fmt/core.h>

namespace lockstep::top {
namespace {

constexpr std::size_t kMostPageLines = 20'000;
constexpr std::size_t kMostPageLine = 1000;

std::string share_words(const looks::RankRow& row) {
  if (!row.waiting_share) return "looked at for too short a time";
  std::string words =
      fmt::format("{:.0f} % of the last minute for other ranks", 100 * *row.waiting_share);
  if (row.input_share) words += fmt::format(", {:.0f} % for input", 100 * *row.input_share);
  return words;
}

// "3 (a guess): 97 %, 71G of 80G, 320 W"; "": the machine has none that is known.
std::string gpu_words(const looks::RankRow& row) {
  if (!row.gpu) return {};
  std::vector<std::string> facts;
  if (row.gpu_share) facts.push_back(fmt::format("{:.0f} %", 100 * *row.gpu_share));
  if (row.gpu_memory_bytes)
    facts.push_back(memory_text(*row.gpu_memory_bytes) +
                    (row.gpu_memory_total_bytes ? " of " + memory_text(*row.gpu_memory_total_bytes)
                                                : std::string()));
  if (row.gpu_watts) facts.push_back(fmt::format("{:.0f} W", *row.gpu_watts));
  return fmt::format("{} (a guess): {}", *row.gpu,
                     facts.empty() ? "it tells nothing" : join(facts, ", "));
}

std::string output_words(const looks::RankRow& row) {
  if (row.output_age_ms < 0) return "none that lockstep has read";
  return fmt::format("{} ago: {}", about_text(row.output_age_ms / 1000), row.last_line);
}

}  // namespace

std::vector<std::string> rank_page(const looks::RankRow& row, const std::string& threads) {
  // The rank is on another node, or has ended.
  if (row.pid == 0)
    return {fmt::format("rank {} on {}: {}", row.rank, row.node, row.state),
            fmt::format("  does    {}", where_text(row)),
            "  lockstep top on its own node shows more while it runs"};
  std::vector<std::string> lines = {
      fmt::format("rank {} on {}, pid {}: {}", row.rank, row.node, row.pid, row.state),
      fmt::format("  does    {}", where_text(row)), fmt::format("  waits   {}", share_words(row)),
      fmt::format("  uses    {:.2f} CPU, {} of memory, {} loaders", row.cpu,
                  memory_text(row.memory_bytes), row.loaders),
      fmt::format("  output  {}", output_words(row))};
  if (const std::string gpu = gpu_words(row); !gpu.empty()) lines.push_back("  GPU     " + gpu);
  if (row.step) {
    std::string step = fmt::format("  step    {}", *row.step);
    if (row.steps_per_s) step += fmt::format(", {:.2f} steps/s", *row.steps_per_s);
    lines.push_back(step + (row.step_guessed ? " (guessed from the output)" : ""));
  }
  lines.emplace_back();
  if (threads.empty()) return lines;
  for (const std::string& line : split(threads, '\n'))
    if (lines.size() < kMostPageLines) lines.push_back(printable(line, kMostPageLine));
  while (!lines.empty() && lines.back().empty())
    lines.pop_back();
  return lines;
}

}  // namespace lockstep::top
