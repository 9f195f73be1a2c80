#include "jobs/on_hosts/hosts_job.h"

#include "base/log.h"
#include "codec/json.h"
#include "hosts/words.h"
#include "jobs/on_hosts/job_follow.h"
#include "jobs/on_hosts/job_plan.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::jobs::on_hosts {
namespace {

Result<std::vector<hosts::HostEnding>> ask(const KnownJob& job, const char* verb,
                                           const hosts::RunCommand& run) {
  io::Loop loop;
  return run(loop, {.hosts = job.nodes,
                    .argv = {"host-job", verb, job.id},
                    .own_binary = true,
                    .input = hosts::CommandRequest::Input::none,
                    .output = hosts::CommandRequest::Output::keep});
}

// Returns one answer for each node. A silent host must not hide the answers of the others: warnings
// say why there is none.
Result<std::vector<PartAnswer>> ask_parts(const KnownJob& job, const hosts::RunCommand& run) {
  LOCKSTEP_TRY_ASSIGN(const auto endings, ask(job, "status", run));
  std::vector<PartAnswer> answers;
  for (std::size_t i = 0; i < endings.size(); ++i) {
    if (!endings[i].error.empty()) log::warning("{}", endings[i].error);
    auto record = parse_status(endings[i].out);
    if (!record && endings[i].error.empty())
      log::warning("{}: {}", job.nodes[i].name, record.error().message);
    answers.push_back({.answered = record && endings[i].error.empty(),
                       .record = record ? std::move(*record) : std::nullopt});
  }
  return answers;
}

std::vector<std::string> names_of(const KnownJob& job, const std::vector<int>& nodes) {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const int node : nodes)
    names.push_back(job.nodes[static_cast<std::size_t>(node)].name);
  return names;
}

}  // namespace

Result<JobStatus> HostsJob::status() {
  LOCKSTEP_TRY_ASSIGN(const auto answers, ask_parts(record_, world_.run));
  std::vector<std::optional<job::JobRecord>> records;
  std::vector<int> silent;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    records.push_back(answers[i].record);
    if (!answers[i].answered) silent.push_back(static_cast<int>(i));
  }
  JobStatus now = status_of(node_names(record_), records);
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (answers[i].answered && !answers[i].record) {
      now.nodes[i].state = JobState::lost;
      now.nodes[i].problem = "knows no such job";
    }
  // A silent host may still run the job.
  if (now.state == JobState::lost && !silent.empty())
    return fail(Errc::unavailable,
                fmt::format("no answer from {}: the state of job {} is not known",
                            hosts::names_text(names_of(record_, silent)), record_.id),
                "ask again once all hosts answer");
  return now;
}

// Asks for a failure report only if there can be one: each question is a log-in per host.
Result<Explanation> HostsJob::why() {
  LOCKSTEP_TRY_ASSIGN(const JobStatus now, status());
  if (now.state != JobState::failed) return explain_job(record_, now, nullptr);
  LOCKSTEP_TRY_ASSIGN(const auto endings, ask(record_, "report", world_.run));
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
  LOCKSTEP_TRY_ASSIGN(const auto endings, ask(record_, "cancel", world_.run));
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
  LOCKSTEP_TRY_ASSIGN(const auto answers, ask_parts(record_, world_.run));
  const LostParts parts = lost_parts(answers);
  const std::string left = fmt::format(
      "no answer from {}: the job may still run there, so nothing is started there again",
      hosts::names_text(names_of(record_, parts.unknown)));
  const std::string again = fmt::format("run lockstep resume {} once all hosts answer", record_.id);
  if (parts.lost.empty() && !parts.unknown.empty()) return fail(Errc::unavailable, left, again);
  if (parts.lost.empty())
    return fail(Errc::invalid_input, "no part of job " + record_.id + " is lost",
                "lockstep jobs shows the state of the job");
  // Start the lost parts although other hosts are silent: their parts may still run.
  if (!parts.unknown.empty()) log::warning("{}; {}", left, again);
  LOCKSTEP_TRY_ASSIGN(const auto request, resumed_request(record_, parts.lost, env));
  LOCKSTEP_TRY_ASSIGN(auto started, world_.start(request));
  return Resumed{.nodes = names_of(record_, parts.lost), .ahead = std::move(started.ahead)};
}

}  // namespace lockstep::jobs::on_hosts
