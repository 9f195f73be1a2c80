#include "top/job_rows.h"

#include "base/text.h"
#include "codec/json.h"
#include "codec/json_members.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace lockstep::top {
namespace {

using looks::NodeRows;
using looks::RankRow;

constexpr std::size_t kMostBytes = 32UL << 20;
constexpr std::size_t kMostNodes = 16'384;
constexpr std::size_t kMostName = 200;

std::string name_member(const nlohmann::json& object, const char* name) {
  return printable(codec::text_member(object, name), kMostName);
}

// The states that a user must look into come first.
int urgency(std::string_view state) {
  constexpr std::array<std::string_view, 7> kOrder = {"hung",  "stopped",  "gone",    "waiting",
                                                      "quiet", "starting", "training"};
  return static_cast<int>(std::find(kOrder.begin(), kOrder.end(), state) - kOrder.begin());
}

bool is_wanted(const RankRow& row, const std::string& filter) {
  if (filter.empty()) return true;
  // A number means a rank: as a part of a text it would match most lines.
  if (const auto rank = parse_int(filter)) return *rank == row.rank;
  const std::string part = to_lower(filter);
  for (const std::string* text : {&row.node, &row.state, &row.doing, &row.where, &row.last_line})
    if (to_lower(*text).find(part) != std::string::npos) return true;
  return false;
}

// Means of the numbers of some rows.
class Mean {
 public:
  void add(std::optional<double> number) {
    if (!number) return;
    sum_ += *number;
    ++count_;
  }
  std::optional<double> get() const {
    return count_ == 0 ? std::nullopt : std::optional(sum_ / count_);
  }

 private:
  double sum_ = 0;
  int count_ = 0;
};

Line line_of(const std::vector<const RankRow*>& rows) {
  Line line{.row = *rows.front()};
  Mean cpu, memory, waiting, input, loaders, speed, gpu, gpu_memory;
  for (const RankRow* row : rows) {
    line.ranks.push_back(row->rank);
    if (std::find(line.nodes.begin(), line.nodes.end(), row->node) == line.nodes.end())
      line.nodes.push_back(row->node);
    if (row->pid != 0) {
      line.row.pid = row->pid;
      cpu.add(row->cpu);
      memory.add(static_cast<double>(row->memory_bytes));
      loaders.add(row->loaders);
    }
    waiting.add(row->waiting_share);
    input.add(row->input_share);
    speed.add(row->steps_per_s);
    gpu.add(row->gpu_share);
    gpu_memory.add(row->gpu_memory_bytes);
    // The slowest rank says how far the group has come.
    if (row->step) line.row.step = std::min(line.row.step.value_or(*row->step), *row->step);
    const bool newer = row->output_age_ms >= 0 &&
                       (line.row.output_age_ms < 0 || row->output_age_ms < line.row.output_age_ms);
    if (!newer) continue;
    line.row.output_age_ms = row->output_age_ms;
    line.row.last_line = row->last_line;
  }
  std::sort(line.ranks.begin(), line.ranks.end());
  line.row.cpu = cpu.get().value_or(0);
  line.row.memory_bytes = static_cast<std::int64_t>(memory.get().value_or(0));
  line.row.loaders = static_cast<int>(std::lround(loaders.get().value_or(0)));
  line.row.waiting_share = waiting.get();
  line.row.input_share = input.get();
  line.row.steps_per_s = speed.get();
  line.row.gpu_share = gpu.get();
  line.row.gpu_memory_bytes = gpu_memory.get();
  return line;
}

// A number that sorts the lines from low to high.
// Most numbers are negated, so that the largest comes first and a row without one comes last.
double sort_number(const Line& line, Sort sort) {
  const RankRow& row = line.row;
  switch (sort) {
    case Sort::state:
      return urgency(row.state);
    case Sort::wait:
      return -row.waiting_share.value_or(-1);
    case Sort::input:
      return -row.input_share.value_or(-1);
    case Sort::cpu:
      return -row.cpu;
    case Sort::memory:
      return -static_cast<double>(row.memory_bytes);
    case Sort::gpu:
      return -row.gpu_share.value_or(-1);
    case Sort::output:
      return -static_cast<double>(row.output_age_ms);
    case Sort::step:
      return -static_cast<double>(row.step.value_or(-1));
    case Sort::rank:
    case Sort::node:
      break;
  }
  return 0;
}

}  // namespace

std::string job_rows_json(const JobRows& job) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const NodeRows& node : job.nodes)
    nodes.push_back(codec::parse_ordered_json(looks::rows_json(node), {.bytes = kMostBytes}));
  const nlohmann::ordered_json all{{"id", job.id},
                                   {"name", job.name},
                                   {"on", job.place},
                                   {"state", job.state},
                                   {"nodes", std::move(nodes)}};
  return codec::print_json(all);
}

Result<JobRows> read_job_rows(std::string_view text) {
  const auto json = codec::parse_json(text, {.bytes = kMostBytes});
  if (!json.is_object() || !json.contains("nodes") || !json["nodes"].is_array())
    return fail(Errc::corrupt, "the rows of the job are malformed");
  JobRows job{.id = name_member(json, "id"),
              .name = name_member(json, "name"),
              .place = name_member(json, "on"),
              .state = name_member(json, "state")};
  for (const auto& each : json["nodes"]) {
    if (job.nodes.size() == kMostNodes) break;
    // Leave out a node whose rows are malformed, and show the others.
    if (auto node = looks::read_rows(codec::print_json(each)))
      job.nodes.push_back(std::move(*node));
  }
  return job;
}

std::size_t count_ranks(const JobRows& job) {
  std::size_t count = 0;
  for (const NodeRows& node : job.nodes)
    count += node.rows.size();
  return count;
}

const RankRow* find_rank(const JobRows& job, int rank) {
  for (const NodeRows& node : job.nodes)
    for (const RankRow& row : node.rows)
      if (row.rank == rank) return &row;
  return nullptr;
}

std::vector<Line> lines_of(const JobRows& job, const LineRules& rules) {
  using Key = std::tuple<std::string, std::string, std::string, int>;
  std::map<Key, std::vector<const RankRow*>> groups;
  for (const NodeRows& node : job.nodes)
    for (const RankRow& row : node.rows)
      if (is_wanted(row, rules.filter))
        groups[{row.state, row.doing, row.where, rules.folds ? -1 : row.rank}].push_back(&row);
  std::vector<Line> lines;
  lines.reserve(groups.size());
  for (const auto& [key, rows] : groups)
    lines.push_back(line_of(rows));
  std::sort(lines.begin(), lines.end(), [&](const Line& a, const Line& b) {
    if (rules.sort == Sort::node && a.nodes.front() != b.nodes.front())
      return a.nodes.front() < b.nodes.front();
    const double left = sort_number(a, rules.sort);
    const double right = sort_number(b, rules.sort);
    return left != right ? left < right : a.ranks < b.ranks;
  });
  return lines;
}

}  // namespace lockstep::top
