// Writes the JSON of --report.
#include "agent/report_json.h"

#include "agent/failure_json.h"
#include "codec/json.h"
#include "proc/signals.h"

#include <algorithm>

namespace lockstep::agent {

nlohmann::ordered_json failure_as_json(const WorkerFailure& failure) {
  nlohmann::ordered_json json;
  json["rank"] = failure.global_rank;
  json["local_rank"] = failure.local_rank;
  json["host"] = failure.host;
  json["pid"] = failure.pid;
  json["exit_code"] = failure.exit_code;
  // Every failure has the same members: unknown facts are null.
  json["signal"] = nullptr;
  if (failure.exit_code < 0) json["signal"] = proc::signal_name(-failure.exit_code);
  json["time_ms"] = failure_time_ms(failure);
  json["error_file"] = nullptr;
  if (failure.error && failure.error_file) json["error_file"] = *failure.error_file;
  json["stdout_log"] = nullptr;
  if (!failure.stdout_log.empty()) json["stdout_log"] = failure.stdout_log;
  json["stderr_log"] = nullptr;
  if (!failure.stderr_log.empty()) json["stderr_log"] = failure.stderr_log;
  json["message"] = "";
  if (failure.error || failure.exit_code < 0)
    json["message"] = failure.error ? failure.error->text : failure_message(failure);
  json["notes"] = failure.notes;
  json["others"] = failure.others;
  json["stderr_tail"] = failure.stderr_tail;
  json["after_stop"] = failure.after_stop;
  return json;
}

namespace {
using nlohmann::ordered_json;

ordered_json text_or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

ordered_json attempt_as_json(const Attempt& attempt) {
  // Without an end the duration is 0.
  const AttemptStart& start = attempt.start;
  const std::int64_t end_ms = attempt.end_ms.value_or(start.at_ms);
  ordered_json json;
  json["restart_count"] = start.restarts;
  json["is_restart"] = attempt.counted;
  json["start_ms"] = start.at_ms;
  json["end_ms"] = end_ms;
  json["duration_ms"] = std::max<std::int64_t>(end_ms - start.at_ms, 0);
  json["ended_by"] = attempt_end_word(attempt.end);
  json["why"] = text_or_null(attempt.why);
  json["nodes"] = start.nodes;
  json["group_rank"] = start.group_rank;
  json["world_size"] = start.world_size;
  json["ranks"] = ordered_json::array();
  for (int i = 0; i < start.workers; ++i)
    json["ranks"].push_back(start.first_rank + i);
  json["log_dir"] = text_or_null(attempt.log_dir);
  return json;
}

ordered_json change_as_json(const NodeChange& change) {
  ordered_json json;
  json["time_ms"] = change.at_ms;
  json["why"] = text_or_null(change.why);
  json["nodes_before"] = change.nodes_before;
  json["nodes_after"] = change.nodes_after;
  return json;
}

// Lists stopped workers apart from failures, except for the root cause.
void add_failures(const FailureReport& report, ordered_json& json) {
  const auto root = root_cause(report);
  json["root_cause"] = nullptr;
  if (root) json["root_cause"] = failure_as_json(report.failures[*root]);
  json["failures"] = ordered_json::array();
  json["stopped"] = ordered_json::array();
  for (const std::size_t at : in_rank_order(report)) {
    const WorkerFailure& failure = report.failures[at];
    const bool stopped = is_consequence(report, failure) && root != at;
    json[stopped ? "stopped" : "failures"].push_back(failure_as_json(failure));
  }
}

void add_history(const JobHistory& history, ordered_json& json) {
  json["attempts_total"] = history.attempts_total();
  json["attempts"] = ordered_json::array();
  for (const Attempt& attempt : history.attempts())
    json["attempts"].push_back(attempt_as_json(attempt));
  json["node_changes_total"] = history.node_changes_total();
  json["node_changes"] = ordered_json::array();
  for (const NodeChange& change : history.node_changes())
    json["node_changes"].push_back(change_as_json(change));
}

ordered_json goodput_as_json(const status::Goodput& goodput) {
  ordered_json json{{"share", goodput.share()}};
  for (std::size_t i = 0; i < status::kPhaseWords.size(); ++i) {
    const auto phase = static_cast<status::Phase>(i);
    if (!goodput.knows(phase)) continue;
    json[std::string(status::kPhaseWords[i]) + "_ms"] =
        std::chrono::duration_cast<std::chrono::milliseconds>(goodput.of(phase)).count();
  }
  if (goodput.knows(status::Phase::redone))
    json["redone_guessed"] = goodput.guesses(status::Phase::redone);
  return json;
}

// Fields that every report begins with.
ordered_json head() {
  ordered_json json;
  json["schema"] = 2;
  json["versions"] = {{"lockstep", LOCKSTEP_VERSION}};
  return json;
}

}  // namespace

std::string refusal_json(const std::string& node, const Error& why) {
  ordered_json json = head();
  json["node"] = node;
  json["outcome"] = why.code == Errc::canceled ? "interrupted" : "refused";
  json["reason"] = why.hint.empty() ? why.message : why.message + "; " + why.hint;
  return codec::print_json(json, codec::JsonText::utf8, 2) + "\n";
}

std::string report_json(const FailureReport& report, const JobHistory& history,
                        const JobFacts& facts) {
  ordered_json json = head();
  json["run_id"] = report.run_id;
  json["entrypoint"] = report.title;
  json["image"] = text_or_null(report.image);
  json["node"] = facts.node;
  json["outcome"] = report.outcome;
  json["start_ms"] = history.start_ms();
  json["end_ms"] = history.end_ms();
  json["duration_ms"] = history.duration_ms();
  json["goodput"] = goodput_as_json(facts.goodput);
  json["straggler"] = nullptr;
  if (facts.straggler)
    json["straggler"] = {{"rank", facts.straggler->rank},
                         {"name", facts.straggler->name},
                         {"ms", facts.straggler->time.count()}};
  json["restarts"] = history.restarts();
  json["max_restarts"] = facts.max_restarts;
  json["log_dir"] = text_or_null(facts.log_dir);
  const std::string* event = root_event(report);
  json["reason"] = text_or_null(event == nullptr ? "" : *event);
  json["others"] = report.others;
  add_failures(report, json);
  add_history(history, json);
  json["events"] = ordered_json::array();
  for (const std::string& line : facts.events)
    json["events"].push_back(codec::parse_ordered_json(line));
  return codec::print_json(json, codec::JsonText::utf8, 2) + "\n";
}

}  // namespace lockstep::agent
