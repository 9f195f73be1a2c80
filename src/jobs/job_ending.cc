#include "jobs/job_ending.h"

#include "base/log.h"
#include "codec/json.h"
#include "hosts/command_run.h"

#include <algorithm>
#include <utility>

namespace lockstep::jobs {

JobEnding ending_of(const std::vector<std::optional<job::JobRecord>>& nodes) {
  JobEnding ending;
  int code = 0;
  for (const auto& node : nodes) {
    if (!node) continue;
    const job::JobState& state = node->state;
    ending.canceled = ending.canceled || state.canceled;
    ending.by_person = ending.by_person || (state.canceled && state.problem.empty());
    ending.ended_ms = std::max(ending.ended_ms, state.ended_ms);
    if (state.stage == job::Stage::lost) continue;
    // A node that still runs is the stage of the whole.
    if (ending.stage == job::Stage::lost || state.stage < ending.stage) ending.stage = state.stage;
    if (state.stage == job::Stage::ended && code == 0) code = state.code;
  }
  if (ending.stage == job::Stage::ended) ending.code = code;
  return ending;
}

Status note_ending(const JobBook& book, const std::string& id, const JobEnding& ending) {
  const bool over = ending.stage == job::Stage::ended || ending.stage == job::Stage::lost;
  return book.note(id, ending.stage, ending.code.value_or(0), over ? ending.ended_ms : 0);
}

Result<std::optional<job::JobRecord>> parse_status(std::string_view text) {
  const nlohmann::json answer = codec::parse_json(text);
  if (!answer.is_array() || answer.size() > 1)
    return fail(Errc::corrupt, "what the host says of the job makes no sense");
  if (answer.empty()) return std::optional<job::JobRecord>();
  LOCKSTEP_TRY_ASSIGN(job::JobRecord record, job::record_from_json(answer[0]));
  return std::optional<job::JobRecord>(std::move(record));
}

Result<std::vector<std::optional<job::JobRecord>>> ask_status(const KnownJob& job) {
  LOCKSTEP_TRY_ASSIGN(const auto endings,
                      hosts::run_command({.hosts = job.nodes,
                                          .argv = {"host-job", "status", job.id},
                                          .own_binary = true,
                                          .input = hosts::CommandRequest::Input::none,
                                          .output = hosts::CommandRequest::Output::keep}));
  std::vector<std::optional<job::JobRecord>> nodes;
  for (const hosts::HostEnding& ending : endings) {
    if (!ending.error.empty()) log::warning("{}", ending.error);
    nodes.push_back(parse_status(ending.out).value_or(std::nullopt));
  }
  return nodes;
}

}  // namespace lockstep::jobs
