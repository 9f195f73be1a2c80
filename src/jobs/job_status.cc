#include "jobs/job_status.h"

#include "codec/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>

namespace lockstep::jobs {
namespace {

constexpr std::array<std::string_view, 9> kNames = {"queued",     "starting", "running",
                                                    "restarting", "saving",   "succeeded",
                                                    "failed",     "canceled", "lost"};

// A job that ended well after a cancellation still counts as canceled, as the user wanted. If no
// person canceled the job, as at a spot notice, the exit code decides.
JobState ended_state(int code, bool by_person) {
  if (by_person) return JobState::canceled;
  return code == 0 ? JobState::succeeded : JobState::failed;
}

bool by_person(const job::PartState& state) {
  return state.canceled && state.problem.empty();
}

JobState state_of_part(const job::PartState& part) {
  switch (part.stage) {
    case job::Stage::prepared:
      return JobState::starting;
    case job::Stage::queued:
      return JobState::queued;
    case job::Stage::running:
      return JobState::running;
    case job::Stage::ended:
      return ended_state(part.code, by_person(part));
    case job::Stage::lost:
      break;
  }
  return JobState::lost;
}

NodeStatus node_status(const std::string& name, const std::optional<job::JobRecord>& record) {
  NodeStatus node{.name = name};
  if (!record) return node;
  const job::PartState& part = record->state;
  node.state = state_of_part(part);
  if (part.stage == job::Stage::ended) node.code = part.code;
  node.canceled = part.canceled;
  node.problem = part.problem;
  return node;
}

// The rows of a sweep over all of its hosts.
struct RowCounts {
  std::size_t all = 0;  // 0: no sweep
  std::size_t done = 0;
  std::size_t failed = 0;
  std::string text = {};  // "37 done, 4 running, 2 failed, 57 queued"
};

RowCounts count_rows(const std::vector<std::optional<job::JobRecord>>& nodes) {
  RowCounts counts;
  // The state of a row is the best of its hosts: a row that is lost or failed on one may begin
  // again on another.
  enum class Best { lost, failed, running, done };
  std::map<std::size_t, Best> rows;
  const auto add = [&](const std::vector<std::size_t>& some, Best state) {
    for (const std::size_t row : some) {
      const auto at = rows.try_emplace(row, state).first;
      at->second = std::max(at->second, state);
    }
  };
  bool goes_on = false;
  bool all_told = true;
  for (const auto& node : nodes) {
    all_told = all_told && node;
    if (!node) continue;
    counts.all = std::max(counts.all, static_cast<std::size_t>(node->spec.rows));
    const bool runs = node->state.stage < job::Stage::ended;
    goes_on = goes_on || runs;
    add(node->row_sets.lost, Best::lost);
    add(node->row_sets.failed, Best::failed);
    add(node->row_sets.running, runs ? Best::running : Best::lost);
    add(node->row_sets.done, Best::done);
  }
  if (counts.all == 0) return counts;
  const auto of = [&](Best state) {
    return static_cast<std::size_t>(std::count_if(
        rows.begin(), rows.end(), [state](const auto& row) { return row.second == state; }));
  };
  counts.done = of(Best::done);
  counts.failed = of(Best::failed);
  counts.text = fmt::format("{} done", counts.done);
  const auto tell = [&](std::size_t count, std::string_view what) {
    if (count > 0) counts.text += fmt::format(", {} {}", count, what);
  };
  tell(of(Best::running), "running");
  tell(counts.failed, "failed");
  tell(of(Best::lost), "lost");
  tell(counts.all - std::min(counts.all, rows.size()), untold_rows(all_told, goes_on));
  return counts;
}

// What the rows of an ended sweep say counts, and not the exit codes of its parts: a part may have
// lost its way to the queue while other hosts did all rows, or a lost part may tell nothing.
int code_of_rows(const RowCounts& rows, int code) {
  if (rows.done >= rows.all) return 0;
  return code == 0 ? 1 : code;
}

}  // namespace

std::string_view untold_rows(bool all_hosts_told, bool goes_on) {
  if (!all_hosts_told) return "unknown";
  return goes_on ? "queued" : "not begun";
}

std::string_view state_name(JobState state) {
  return kNames[static_cast<std::size_t>(state)];
}

std::optional<JobState> state_of(std::string_view name) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<JobState>(found - kNames.begin());
}

bool is_over(JobState state) {
  return state >= JobState::succeeded;
}

JobState started_state(const std::vector<std::string>& ahead) {
  return ahead.empty() ? JobState::running : JobState::queued;
}

JobStatus status_of(const std::vector<std::string>& names,
                    const std::vector<std::optional<job::JobRecord>>& nodes) {
  JobStatus whole;
  auto stage = job::Stage::lost;
  int code = 0;
  bool cut = false;  // a row, by a cancellation or a notice
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    whole.nodes.push_back(node_status(i < names.size() ? names[i] : "", nodes[i]));
    if (!nodes[i]) continue;
    const job::PartState& part = nodes[i]->state;
    whole.canceled = whole.canceled || part.canceled;
    // A part whose rows had all ended before the signal reports their result.
    cut = cut || (part.canceled && part.code > 128);
    whole.by_person = whole.by_person || by_person(part);
    whole.ended_ms = std::max(whole.ended_ms, part.ended_ms);
    // One reason is enough for a line of the list. `nodes` has the problem of each node.
    if (whole.why.empty()) whole.why = part.problem;
    // A lost part tells nothing: the other parts decide.
    if (part.stage == job::Stage::lost) continue;
    // Stages are in order of time, so the earliest stage of any known part wins.
    if (stage == job::Stage::lost || part.stage < stage) {
      stage = part.stage;
      whole.state = state_of_part(part);
    }
    // The first failure in the order of nodes stands for the job.
    if (part.stage == job::Stage::ended && code == 0) code = part.code;
  }
  const RowCounts rows = count_rows(nodes);
  if (rows.all > 0) {
    whole.why = rows.text;
    whole.rows_ended = rows.done + rows.failed >= rows.all && !cut;
    code = code_of_rows(rows, code);
  }
  if (stage == job::Stage::ended) {
    whole.code = code;
    whole.state = ended_state(code, whole.by_person);
  } else if (stage != job::Stage::lost) {
    // A part still runs: the ends of the other parts are not the job's end.
    whole.ended_ms = 0;
  }
  return whole;
}

Result<std::optional<job::JobRecord>> parse_status(std::string_view text) {
  const nlohmann::json answer = codec::parse_json(text);
  if (!answer.is_array() || answer.size() > 1)
    return fail(Errc::corrupt,
                "the host's answer about the job must be a list with a single record");
  if (answer.empty()) return std::optional<job::JobRecord>();
  LOCKSTEP_TRY_ASSIGN(job::JobRecord record, job::record_from_json(answer[0]));
  return std::optional<job::JobRecord>(std::move(record));
}

}  // namespace lockstep::jobs
