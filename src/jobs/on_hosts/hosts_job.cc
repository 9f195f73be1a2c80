#include "jobs/on_hosts/hosts_job.h"

#include "base/log.h"
#include "codec/json.h"
#include "hosts/command_run.h"
#include "jobs/on_hosts/job_follow.h"
#include "jobs/on_hosts/job_plan.h"
#include "jobs/on_hosts/job_start.h"

#include <utility>

namespace lockstep::jobs::on_hosts {
namespace {

Result<std::vector<hosts::HostEnding>> ask(const KnownJob& job, const char* verb) {
  return hosts::run_command({.hosts = job.nodes,
                             .argv = {"host-job", verb, job.id},
                             .own_binary = true,
                             .input = hosts::CommandRequest::Input::none,
                             .output = hosts::CommandRequest::Output::keep});
}

}  // namespace

Result<std::vector<std::optional<job::JobRecord>>> ask_records(const KnownJob& job) {
  LOCKSTEP_TRY_ASSIGN(const auto endings, ask(job, "status"));
  std::vector<std::optional<job::JobRecord>> nodes;
  for (const hosts::HostEnding& ending : endings) {
    // A silent host must not hide the answers of the others.
    if (!ending.error.empty()) log::warning("{}", ending.error);
    nodes.push_back(parse_status(ending.out).value_or(std::nullopt));
  }
  return nodes;
}

Result<JobStatus> HostsJob::status() {
  LOCKSTEP_TRY_ASSIGN(const auto records, ask_records(record_));
  return status_of(node_names(record_), records);
}

// Asks for a failure report only if there can be one: each question is a log-in per host.
Result<Explanation> HostsJob::why() {
  LOCKSTEP_TRY_ASSIGN(const JobStatus now, status());
  if (now.state != JobState::failed) return explain_job(record_, now, nullptr);
  LOCKSTEP_TRY_ASSIGN(const auto endings, ask(record_, "report"));
  for (const hosts::HostEnding& ending : endings) {
    nlohmann::json report = codec::parse_json(ending.out);
    // All nodes of a failed job have the same root cause, unless they could not speak any more.
    if (report.is_object() && report.contains("root_cause") && report["root_cause"].is_object())
      return explain_job(record_, now, report);
  }
  return explain_job(record_, now, nullptr);
}

Result<Followed> HostsJob::follow(const FollowOptions& options) {
  return follow_job({.job = record_, .options = options});
}

Result<JobStatus> HostsJob::cancel() {
  LOCKSTEP_TRY_ASSIGN(const auto endings, ask(record_, "cancel"));
  std::vector<std::optional<job::JobRecord>> nodes;
  for (std::size_t i = 0; i < endings.size(); ++i) {
    nodes.push_back(parse_status(endings[i].out).value_or(std::nullopt));
    if (!nodes.back())
      log::warning("{}", endings[i].error.empty()
                             ? record_.nodes[i].name + ": no such job is known there"
                             : endings[i].error);
  }
  return status_of(node_names(record_), nodes);
}

Result<Resumed> HostsJob::resume(const std::vector<std::string>& env) {
  LOCKSTEP_TRY_ASSIGN(const auto records, ask_records(record_));
  std::vector<int> lost;
  Resumed resumed;
  for (std::size_t i = 0; i < records.size(); ++i) {
    // Without a record the host does not know the job, or did not answer: start its part again.
    if (records[i] && records[i]->state.stage != job::Stage::lost) continue;
    lost.push_back(static_cast<int>(i));
    resumed.nodes.push_back(record_.nodes[i].name);
  }
  if (lost.empty())
    return fail(Errc::invalid_input, "no part of job " + record_.id + " is lost",
                "lockstep jobs shows the state of the job");
  LOCKSTEP_TRY_ASSIGN(const auto request, resumed_request(record_, lost, env));
  LOCKSTEP_TRY_ASSIGN(auto started, start_job(request));
  resumed.ahead = std::move(started.ahead);
  return resumed;
}

}  // namespace lockstep::jobs::on_hosts
