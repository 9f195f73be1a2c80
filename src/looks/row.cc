#include "looks/row.h"

#include "base/text.h"
#include "codec/json.h"
#include "codec/json_fields.h"
#include "looks/hang_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <set>

namespace lockstep::looks {
namespace {

constexpr std::size_t kMostRowText = 1000;
constexpr std::size_t kMostRowName = 128;
constexpr std::size_t kMostRows = 4096;  // of a node
constexpr std::size_t kMostRowsBytes = 4UL << 20;
constexpr std::int64_t kLongestRowAge = std::int64_t{100} * 365 * 86'400'000;
constexpr std::int64_t kMostMemory = std::int64_t{1} << 50;
constexpr double kMostCores = 1e5;
constexpr double kMostStepsPerSecond = 1e9;
constexpr double kMostWatts = 1e5;
constexpr std::int64_t kMostGpus = 4096;
constexpr std::int64_t kMostStep = std::int64_t{1} << 53;
// Shorter stands are not worth a word, as in VerdictRules::shown.
constexpr Millis kShownQuiet{5000};

// A text that printable() has cut at the limit stays as it is: it ends with "...".
void shorten(std::string& text, std::size_t limit) {
  if (text.size() > limit + 3) text = printable(text, limit);
}

template <class Number>
void bound(std::optional<Number>& number, Number most) {
  if (number) number = std::clamp(*number, Number{0}, most);
}

}  // namespace

static void fields(codec::JsonFields& io, RankRow& row) {
  io("rank", row.rank, {0, 1 << 24});
  io("node", row.node);
  io("pid", row.pid, {0, 1 << 30});
  io("state", row.state);
  io("doing", row.doing);
  io("where", row.where);
  io("cpu", row.cpu);
  io("memory_bytes", row.memory_bytes, {0, kMostMemory});
  io("waiting_share", row.waiting_share);
  io("input_share", row.input_share);
  io("loaders", row.loaders, {0, 1 << 20});
  io("gpu", row.gpu);
  io("gpu_share", row.gpu_share);
  io("gpu_memory_bytes", row.gpu_memory_bytes);
  io("gpu_memory_total_bytes", row.gpu_memory_total_bytes);
  io("gpu_watts", row.gpu_watts);
  io("output_age_ms", row.output_age_ms, {-1, kLongestRowAge});
  io("last_line", row.last_line);
  io("step", row.step);
  io("steps_per_s", row.steps_per_s);
  io("step_guessed", row.step_guessed);
}

static void fields(codec::JsonFields& io, NodeRows& rows) {
  io("node", rows.node);
  io("command", rows.command);
  io("attempt", rows.attempt, {0, 1 << 30});
  io("world", rows.world, {0, 1 << 24});
  io("state", rows.state);
  io("words", rows.words);
  io("straggler", rows.straggler);
  io("gpus_pending", rows.gpus_pending);
  io("rows", rows.rows);
}

std::string rows_json(const NodeRows& rows) {
  return codec::print_json(codec::write_fields(rows));
}

Result<NodeRows> read_rows(std::string_view text) {
  NodeRows read;
  LOCKSTEP_TRY(codec::read_fields(
      codec::parse_json(text, {.bytes = kMostRowsBytes}), read,
      {.strict = false, .text = kMostRowText, .list = kMostRows, .printable = kMostRowText}));
  for (std::string* name : {&read.node, &read.state})
    shorten(*name, kMostRowName);
  for (RankRow& row : read.rows) {
    for (std::string* name : {&row.node, &row.state, &row.doing, &row.where})
      shorten(*name, kMostRowName);
    shorten(row.last_line, kMostLastLine);
    // An agent that is damaged, or of another version, must not spoil the sums and columns of a
    // view.
    row.cpu = std::clamp(row.cpu, 0.0, kMostCores);
    bound(row.waiting_share, 1.0);
    bound(row.input_share, 1.0);
    bound(row.steps_per_s, kMostStepsPerSecond);
    bound(row.gpu_share, 1.0);
    bound(row.gpu_watts, kMostWatts);
    bound(row.gpu, kMostGpus);
    bound(row.gpu_memory_bytes, kMostMemory);
    bound(row.gpu_memory_total_bytes, kMostMemory);
    bound(row.step, kMostStep);
  }
  return read;
}

bool is_known(const std::vector<NodeRows>& all, const NodeRows& rows) {
  const auto same_ranks = [](const NodeRows& a, const NodeRows& b) {
    return std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(),
                      [](const RankRow& x, const RankRow& y) { return x.rank == y.rank; });
  };
  return std::any_of(all.begin(), all.end(), [&](const NodeRows& one) {
    return one.node == rows.node && same_ranks(one, rows);
  });
}

void sort_nodes(std::vector<NodeRows>& all) {
  const auto lowest = [](const NodeRows& node) {
    int least = std::numeric_limits<int>::max();
    for (const RankRow& row : node.rows)
      least = std::min(least, row.rank);
    return least;
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const NodeRows& a, const NodeRows& b) { return lowest(a) < lowest(b); });
}

void add_ranks(NodeRows& rows, const Fold& fold, const Verdict& verdict) {
  std::set<int> known;
  for (const RankRow& row : rows.rows)
    known.insert(row.rank);
  for (const Group& group : fold.groups)
    for (const auto& [node, ranks] : group.ranks)
      for (const int rank : ranks) {
        const auto at = static_cast<std::size_t>(node);
        if (rows.rows.size() == kMostRows || at >= fold.nodes.size()) return;
        if (!known.insert(rank).second) continue;
        RankRow row{.rank = rank, .node = fold.nodes[at]};
        row.state = rank_state(rank, group.activity, group.quiet, verdict);
        row.doing = activity_words(group.activity);
        row.where = where_words(group.place);
        rows.rows.push_back(std::move(row));
      }
}

std::string_view rank_state(int rank, const Activity& activity, Millis quiet,
                            const Verdict& verdict) {
  // That a process has ended or is stopped is a fact; the verdict below only infers.
  if (activity.doing == Doing::ended) return "gone";
  if (activity.doing == Doing::stopped) return "stopped";
  // Ranks that only wait for others do not cause the hang, and do not count as "hung".
  const bool waits = std::binary_search(verdict.waiting.begin(), verdict.waiting.end(), rank);
  if (waits) return "waiting";
  if (verdict.state == VerdictState::hung) return "hung";
  if (activity.doing == Doing::importing || activity.doing == Doing::rendezvous) return "starting";
  if (quiet >= kShownQuiet) return waits_for_ranks(activity.doing) ? "waiting" : "quiet";
  return verdict.state == VerdictState::starting ? "starting" : "training";
}

std::string where_words(const Place& place) {
  if (place.line.empty() || place.function.empty()) return place.line;
  return fmt::format("{}, {}", place.function, place.line);
}

RankRow row_of(const RankLook& look, const Activity& activity, const Motion& motion,
               const Verdict& verdict) {
  RankRow row{.rank = look.rank, .pid = look.pid};
  row.state = rank_state(look.rank, activity, motion.quiet, verdict);
  if (!look.process) return row;
  row.doing = activity_words(activity);
  if (look.stack) row.where = where_words(place_of(*look.stack));
  return row;
}

}  // namespace lockstep::looks
