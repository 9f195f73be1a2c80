#include "jobs/job_status.h"

#include "codec/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
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

// Returns "37 done, 4 running, 2 failed, 57 queued" for a sweep, else "".
std::string row_counts_text(const std::vector<std::optional<job::JobRecord>>& nodes) {
  std::int64_t all = 0;
  rows::RowCounts counts;
  std::int64_t lost = 0;
  bool goes_on = false;
  bool all_told = true;
  for (const auto& node : nodes) {
    all_told = all_told && node;
    if (!node) continue;
    all = std::max(all, node->spec.rows);
    counts.done += node->row_counts.done;
    counts.failed += node->row_counts.failed;
    const bool runs = node->state.stage < job::Stage::ended;
    (runs ? counts.running : lost) += node->row_counts.running;
    goes_on = goes_on || runs;
  }
  if (all == 0) return {};
  std::string text = fmt::format("{} done", counts.done);
  const auto add = [&](std::int64_t count, const char* what) {
    if (count > 0) text += fmt::format(", {} {}", count, what);
  };
  add(counts.running, "running");
  add(counts.failed, "failed");
  add(lost, "lost");
  // A silent host may have done some of the rest.
  add(all - counts.done - counts.running - counts.failed - lost, !all_told ? "unknown"
                                                                 : goes_on ? "queued"
                                                                           : "not begun");
  return text;
}

}  // namespace

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
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    whole.nodes.push_back(node_status(i < names.size() ? names[i] : "", nodes[i]));
    if (!nodes[i]) continue;
    const job::PartState& part = nodes[i]->state;
    whole.canceled = whole.canceled || part.canceled;
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
  if (const std::string told = row_counts_text(nodes); !told.empty()) whole.why = told;
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
