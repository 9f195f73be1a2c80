// Failures and --report FILE in JSON; see failure_report.h.
#include "agent/failure_json.h"
#include "agent/failure_report.h"
#include "proc/signals.h"

namespace lockstep::agent {

nlohmann::ordered_json failure_as_json(const WorkerFailure& failure) {
  nlohmann::ordered_json json;
  json["rank"] = failure.global_rank;
  json["local_rank"] = failure.local_rank;
  json["host"] = failure.host;
  json["pid"] = failure.pid;
  json["exit_code"] = failure.exit_code;
  json["signal"] = nullptr;
  if (failure.exit_code < 0) json["signal"] = proc::signal_name(-failure.exit_code);
  json["time_ms"] = failure_time_ms(failure);
  json["error_file"] = nullptr;
  if (failure.error && failure.error_file) json["error_file"] = *failure.error_file;
  json["stdout_log"] = nullptr;
  if (!failure.stdout_log.empty()) json["stdout_log"] = failure.stdout_log;
  json["stderr_log"] = nullptr;
  if (!failure.stderr_log.empty()) json["stderr_log"] = failure.stderr_log;
  json["message"] = failure.error ? failure.error->text : failure_message(failure);
  json["notes"] = failure.notes;
  json["stderr_tail"] = failure.stderr_tail;
  json["after_stop"] = failure.after_stop;
  return json;
}

std::string report_json(const FailureReport& report) {
  nlohmann::ordered_json json;
  json["version"] = 1;
  json["run_id"] = report.run_id;
  json["outcome"] = report.outcome;
  json["entrypoint"] = report.title;
  json["reason"] = nullptr;
  if (const std::string* event = root_event(report)) json["reason"] = *event;
  json["root_cause"] = nullptr;
  if (const auto root = root_cause(report))
    json["root_cause"] = failure_as_json(report.failures[*root]);
  json["failures"] = nlohmann::ordered_json::array();
  for (const std::size_t at : in_rank_order(report))
    json["failures"].push_back(failure_as_json(report.failures[at]));
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::agent
