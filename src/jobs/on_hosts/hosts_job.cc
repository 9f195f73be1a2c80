#include "jobs/on_hosts/hosts_job.h"

#include "base/last_line.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/json.h"
#include "hosts/words.h"
#include "jobs/agent_answers.h"
#include "jobs/on_hosts/ask_hosts.h"
#include "jobs/on_hosts/job_follow.h"
#include "jobs/on_hosts/job_plan.h"
#include "jobs/profile_files.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"
#include "status/profile_trace.h"

#include <fmt/core.h>

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

namespace lockstep::jobs::on_hosts {
namespace {

constexpr std::size_t kMostError = 1000;
constexpr std::size_t kMostRowsJson = 16UL << 20;
constexpr codec::JsonLimits kReport{.bytes = 8UL << 20};
// A host that hangs must not delay the traces of other hosts.
constexpr std::chrono::seconds kLookLimit{20};
constexpr std::chrono::seconds kStartLimit{60};  // with the log-in
// A host must send at least kLeastFetched of a trace in this time. A host with a byte now and then
// would hold the command for ever.
constexpr std::chrono::seconds kFetchLimit{30};
constexpr std::size_t kLeastFetched = 1UL << 20;

// more: words after the job's id.
Result<std::vector<hosts::HostEnding>> ask(const KnownJob& job, const char* verb,
                                           const hosts::RunCommand& run,
                                           const std::vector<std::string>& more = {}) {
  io::Loop loop;
  hosts::CommandRequest request = about_job(job.nodes, verb, job.id);
  request.argv.insert(request.argv.end(), more.begin(), more.end());
  return run(loop, request);
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

// Asks for what the agents answer. A host says why answers are missing.
Result<std::vector<hosts::HostEnding>> ask_agents(const KnownJob& job, const char* verb,
                                                  const hosts::RunCommand& run,
                                                  const std::vector<std::string>& more = {}) {
  LOCKSTEP_TRY_ASSIGN(auto endings, ask(job, verb, run, more));
  for (std::size_t i = 0; i < endings.size(); ++i)
    if (endings[i].error.empty() && !endings[i].err.empty())
      log::warning("{}: {}", job.nodes[i].name, printable(last_line(endings[i].err), kMostError));
  return endings;
}

// Several agents of a host, or none, may belong to the job.
template <class Answer>
std::vector<Answer> answers_of(const std::vector<hosts::HostEnding>& endings,
                               Result<Answer> (*read)(std::string_view)) {
  std::vector<Answer> answers;
  for (const hosts::HostEnding& ending : endings)
    add_answers(answers, agent_texts(ending.out), read);
  return answers;
}

// Returns the job with this host alone.
KnownJob only_on(KnownJob job, const std::string& host) {
  std::erase_if(job.nodes, [&](const hosts::HostPlace& node) { return node.name != host; });
  return job;
}

// Returns why a host has not done a request; empty: it has.
std::string trouble_of(const hosts::HostPlace& host, const hosts::HostEnding& ending) {
  if (!ending.error.empty()) return ending.error;
  if (ending.code == 0) return {};
  const std::string said = printable(last_line(ending.err), kMostError);
  return fmt::format("{}: {}", host.name,
                     said.empty() ? fmt::format("host-job ended with code {}", ending.code) : said);
}

// After Ctrl-C the hosts end their requests early. Their answers do not show the signal.
Status check_stop() {
  const int number = proc::SignalWatch::take_stop();
  if (number == 0) return {};
  return Failure(Error{Errc::canceled, "stopped by " + proc::signal_name(number), {}, number});
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
      // The host has answered, so the part is lost. The node of a silent host keeps an empty state.
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
  LOCKSTEP_TRY_ASSIGN(const auto sweep, sweep_of(record_));
  const auto kept = sweep ? rows_of_plan(record_.plan) : std::nullopt;
  if (kept) {
    Explanation said = explain_rows(record_, record_.status, *sweep, *kept);
    said.text.resize(said.advice_at);
    if (!undone_rows(*sweep, *kept).empty()) said.text += again_words(*sweep, *kept) + "\n";
    return said;
  }
  LOCKSTEP_TRY_ASSIGN(const JobStatus now, status());
  if (sweep) {
    LOCKSTEP_TRY_ASSIGN(const auto known, rows(*sweep));
    return explain_rows(record_, now, *sweep, known);
  }
  if (now.state == JobState::running)
    return with_looks(explain_job(record_, now, nullptr),
                      looks({}).value_or(std::vector<looks::Answer>()));
  if (now.state != JobState::failed && now.state != JobState::canceled)
    return explain_job(record_, now, nullptr);
  LOCKSTEP_TRY_ASSIGN(const auto endings, ask(record_, "report", world_.run));
  nlohmann::json any = nullptr;
  for (const hosts::HostEnding& ending : endings) {
    nlohmann::json report = codec::parse_json(ending.out, kReport);
    // All nodes of a failed job have the same root cause, unless they could not speak any more.
    if (report.is_object() && report.contains("root_cause") && report["root_cause"].is_object())
      return explain_job(record_, now, report);
    if (report.is_object() && any.is_null()) any = std::move(report);
  }
  return explain_job(record_, now, any);
}

Result<std::vector<looks::Answer>> HostsJob::looks(const looks::Question& question) {
  std::vector<std::string> more;
  if (const std::string words = looks::print_question(question); !words.empty())
    more.push_back(words);
  LOCKSTEP_TRY_ASSIGN(const auto endings, ask_agents(record_, "looks", world_.run, more));
  return answers_of<looks::Answer>(endings, looks::read_answer);
}

std::vector<nlohmann::json> HostsJob::row_reports(std::size_t row, const std::string& host) {
  const auto endings = ask(only_on(record_, host), "report", world_.run, {std::to_string(row)});
  std::vector<nlohmann::json> reports;
  for (const hosts::HostEnding& ending : endings ? *endings : std::vector<hosts::HostEnding>())
    if (auto report = codec::parse_json(ending.out, kReport); report.is_object())
      reports.push_back(std::move(report));
  return reports;
}

// The agents of all rows have the job's id.
Result<std::vector<looks::Answer>> HostsJob::row_looks(std::size_t row, const std::string& host) {
  KnownJob there = only_on(record_, host);
  there.id += fmt::format("[{}]", row);
  LOCKSTEP_TRY_ASSIGN(const auto endings, ask_agents(there, "looks", world_.run));
  return answers_of<looks::Answer>(endings, looks::read_answer);
}

Result<std::vector<looks::NodeRows>> HostsJob::ranks() {
  LOCKSTEP_TRY_ASSIGN(const auto endings, ask_agents(record_, "ranks", world_.run));
  auto nodes = answers_of<looks::NodeRows>(endings, looks::read_rows);
  looks::sort_nodes(nodes);
  return nodes;
}

Result<std::vector<status::EventAnswer>> HostsJob::events(std::int64_t after) {
  LOCKSTEP_TRY_ASSIGN(const auto endings,
                      ask_agents(record_, "events", world_.run, {std::to_string(after)}));
  return answers_of<status::EventAnswer>(endings, status::read_event_answer);
}

Result<std::vector<PageThere>> HostsJob::page(int node) {
  LOCKSTEP_TRY_ASSIGN(const auto endings,
                      ask_agents(record_, "page", world_.run, {std::to_string(node)}));
  std::vector<PageThere> found;
  for (std::size_t i = 0; i < endings.size(); ++i)
    for (auto& answer : answers_of<page::PageAnswer>({endings[i]}, page::read_page_answer))
      found.push_back({.host = record_.nodes[i], .page = std::move(answer)});
  return found;
}

Result<ProfileAnswers> HostsJob::profile(const ProfileRequest& request) {
  using What = status::ProfileQuery::What;
  std::vector<int> asked;
  std::vector<hosts::HostPlace> places;
  for (int host = 0; host < static_cast<int>(record_.nodes.size()); ++host) {
    if (!request.hosts.empty() && !request.hosts.contains(host)) continue;
    asked.push_back(host);
    places.push_back(record_.nodes[static_cast<std::size_t>(host)]);
  }
  // The hosts of an earlier attempt.
  if (places.empty()) return ProfileAnswers();
  auto command = about_job(places, "profile", record_.id);
  command.argv.push_back(status::print_profile_query(request.query));
  // Only the first question may have to log in.
  command.limit = request.query.what == What::start ? kStartLimit : kLookLimit;
  io::Loop loop;
  LOCKSTEP_TRY_ASSIGN(const auto endings, world_.run(loop, command));
  LOCKSTEP_TRY(check_stop());
  ProfileAnswers answers;
  for (std::size_t i = 0; i < endings.size(); ++i) {
    if (std::string trouble = trouble_of(places[i], endings[i]); !trouble.empty()) {
      answers.silent.emplace(asked[i], std::move(trouble));
      continue;
    }
    // The login host of a Slurm job says so if some nodes have not answered.
    if (!endings[i].err.empty())
      answers.silent.emplace(
          asked[i],
          fmt::format("{}: {}", places[i].name, printable(last_line(endings[i].err), kMostError)));
    for (const std::string& text : agent_texts(endings[i].out))
      if (auto says = status::read_profile_answer(text)) {
        if (says->late) says->node = places[i].name;
        answers.agents.push_back({.host = asked[i], .says = std::move(*says)});
      }
  }
  return answers;
}

// The host may be hostile: only the rank's number decides where its bytes go, and the bytes are
// bounded.
Status HostsJob::bring_trace(const TraceThere& trace, const std::string& to,
                             const std::function<Status()>& meanwhile) {
  if (trace.host < 0 || static_cast<std::size_t>(trace.host) >= record_.nodes.size())
    return fail(Errc::not_found, "the job has left the host of the trace");
  const hosts::HostPlace& place = record_.nodes[static_cast<std::size_t>(trace.host)];
  auto command = about_job({place}, "profile-trace", record_.id);
  command.argv.push_back(trace.folder);
  command.argv.push_back(std::to_string(trace.profile));
  command.argv.push_back(std::to_string(trace.rank));
  // A login host may wait for the file system of the nodes before the first byte.
  command.limit = place.login ? 3 * kFetchLimit : kFetchLimit;
  command.least_output = kLeastFetched;
  return write_trace(to, [&](const io::Fd& file) -> Status {
    std::int64_t bytes = 0;
    Status held;
    command.on_output = [&](std::size_t, std::string_view piece) -> Status {
      bytes += static_cast<std::int64_t>(piece.size());
      if (bytes > world_.most_trace) return status::trace_too_large(to);
      LOCKSTEP_TRY(io::write_all(file.get(), piece, to));
      return held = meanwhile();
    };
    io::Loop loop;
    LOCKSTEP_TRY_ASSIGN(const auto endings, world_.run(loop, command));
    LOCKSTEP_TRY(check_stop());
    LOCKSTEP_TRY(held);  // meanwhile() has taken the stop signal
    if (const auto trouble = trouble_of(place, endings.at(0)); !trouble.empty())
      return fail(Errc::unavailable, trouble);
    return {};
  });
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

// A silent host hides its rows, and a warning says so.
Result<std::vector<JobRow>> HostsJob::rows(const JobSweep& sweep) const {
  LOCKSTEP_TRY_ASSIGN(const auto endings, ask(record_, "rows", world_.run));
  std::vector<JobRow> all;
  for (std::size_t i = 0; i < endings.size(); ++i) {
    if (!endings[i].error.empty()) {
      log::warning("{}", endings[i].error);
      continue;
    }
    auto told =
        rows::records_from_json(codec::parse_json(endings[i].out, {.bytes = kMostRowsJson}));
    if (!told) {
      log::warning("{}: {}", record_.nodes[i].name, told.error().message);
      continue;
    }
    for (rows::RowRecord& record : *told)
      all.push_back({.record = std::move(record), .host = record_.nodes[i].name});
  }
  return merge_rows(sweep, std::move(all));
}

Status HostsJob::keep_rows(const JobBook& book) const {
  LOCKSTEP_TRY_ASSIGN(const auto sweep, sweep_of(record_));
  if (!sweep) return {};
  LOCKSTEP_TRY_ASSIGN(const auto known, rows(*sweep));
  return book.note_plan(record_.id, plan_with_rows(record_.plan, known));
}

// Starts the rows again that are not done, on all hosts: each host takes rows from one queue.
Result<Resumed> HostsJob::resume_rows(const JobSweep& sweep, const std::vector<std::string>& env) {
  if (const auto kept = rows_of_plan(record_.plan))
    return fail(
        Errc::invalid_input,
        fmt::format("job {} has ended, and its rented machines do not run it again", record_.id),
        again_words(sweep, *kept));
  LOCKSTEP_TRY_ASSIGN(const JobStatus now, status());
  if (!now.is_over())
    return fail(Errc::invalid_input, "job " + record_.id + " has not ended",
                "lockstep wait waits for its end; then lockstep resume runs the failed rows again");
  for (const NodeStatus& node : now.nodes)
    if (!node.state)
      return fail(Errc::unavailable,
                  fmt::format("no answer from {}, which may have done some of the rows", node.name),
                  fmt::format("run lockstep resume {} once all hosts answer", record_.id));
  LOCKSTEP_TRY_ASSIGN(const auto known, rows(sweep));
  const auto undone = undone_rows(sweep, known);
  if (undone.empty())
    return fail(Errc::invalid_input, "all rows of job " + record_.id + " are done");
  LOCKSTEP_TRY_ASSIGN(const auto request, rows_request(record_, undone, env));
  LOCKSTEP_TRY_ASSIGN(auto started, world_.start(request));
  return Resumed{.nodes = node_names(record_), .ahead = std::move(started.ahead)};
}

Result<Resumed> HostsJob::resume(const std::vector<std::string>& env) {
  LOCKSTEP_TRY_ASSIGN(const auto sweep, sweep_of(record_));
  if (sweep) return resume_rows(*sweep, env);
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
  // Other parts still wait for the lost nodes, so only the lost parts are started.
  LOCKSTEP_TRY_ASSIGN(const auto request, resumed_request(record_, parts, env));
  // Start the lost parts although other hosts are silent: their parts may still run.
  if (!parts.unknown.empty()) log::warning("{}; {}", left, again);
  LOCKSTEP_TRY_ASSIGN(auto started, world_.start(request));
  return Resumed{.nodes = names_of(record_, parts.lost), .ahead = std::move(started.ahead)};
}

}  // namespace lockstep::jobs::on_hosts
