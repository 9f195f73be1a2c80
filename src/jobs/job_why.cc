#include "jobs/job_why.h"

#include "base/text.h"
#include "codec/json_members.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

namespace lockstep::jobs {
namespace {

constexpr std::size_t kMostLooks = 8UL << 20;
constexpr std::string_view kNoAnswer =
    "no agent of the job answers, so it is not known what the ranks do; in a container with a "
    "network of its own, ask from inside";

constexpr std::size_t kMostText = 500;  // of one text of a report
constexpr std::size_t kMostOthers = 8;
constexpr std::size_t kMostReport = 8UL << 20;

// The worker that failed first, from a report.
struct RootCause {
  std::int64_t rank = 0;
  std::int64_t exit_code = 0;
  std::string host;
  std::string signal;
  std::string message;  // the last line
  std::string log;
};

// A host made the report: bound each text, and make control characters visible.
std::string text_of(const nlohmann::json& object, const char* name) {
  return printable(strip(codec::text_member(object, name)), kMostText);
}

// A traceback ends with the line that names the error.
std::string last_line_of(const nlohmann::json& failure) {
  std::string text = codec::text_member(failure, "message");
  if (strip(text).empty()) {
    const auto tail = codec::texts_member(failure, "stderr_tail");
    if (!tail.empty()) text = tail.back();
  }
  const std::string all(strip(text));
  return printable(all.substr(all.rfind('\n') + 1), kMostText);
}

std::optional<RootCause> root_cause_of(const nlohmann::json& report) {
  if (!report.is_object()) return std::nullopt;
  const auto cause = report.find("root_cause");
  if (cause == report.end() || !cause->is_object()) return std::nullopt;
  std::string log = text_of(*cause, "stderr_log");
  // Errors usually go to stderr, so prefer the log of stderr.
  if (log.empty()) log = text_of(*cause, "stdout_log");
  return RootCause{.rank = codec::integer_member(*cause, "rank"),
                   .exit_code = codec::integer_member(*cause, "exit_code"),
                   .host = text_of(*cause, "host"),
                   .signal = text_of(*cause, "signal"),
                   .message = last_line_of(*cause),
                   .log = std::move(log)};
}

// Returns where the ranks were at the end: the other ranks if one failed.
std::vector<std::string> others_in(const nlohmann::json& report) {
  const auto cause = report.find("root_cause");
  std::vector<std::string> others;
  if (cause != report.end() && cause->is_object()) others = codec::texts_member(*cause, "others");
  if (others.empty()) others = codec::texts_member(report, "others");
  others.resize(std::min(others.size(), kMostOthers));
  for (std::string& line : others)
    line = printable(strip(line), kMostText);
  return others;
}

// Adds what the ranks did at the end.
void add_ranks(const nlohmann::json& report, Explanation& said) {
  const Hang hang = hang_in(report);
  if (!hang.words.empty()) {
    said.json["hang"] = {{"words", hang.words}, {"folder", nullptr}};
    said.text += fmt::format("hang: {}\n", hang.words);
  }
  if (!hang.evidence.empty()) {
    said.json["hang"]["folder"] = hang.folder;
    said.text += fmt::format("  {}\n", hang.evidence);
  }
  said.json["others"] = nlohmann::ordered_json::array();
  for (const std::string& line : others_in(report)) {
    said.json["others"].push_back(line);
    said.text += fmt::format("  {}\n", line);
  }
}

std::string state_words(JobState state, std::optional<int> code) {
  const std::string name(state_name(state));
  return state == JobState::failed && code ? fmt::format("{} ({})", name, *code) : name;
}

std::string node_words(const NodeStatus& node) {
  std::string words = node.state ? state_words(*node.state, node.code) : "does not answer";
  if (!node.problem.empty()) words += ": " + printable(node.problem, kMostText);
  return words;
}

std::string cause_text(const RootCause& cause) {
  std::string text = fmt::format("root cause: rank {} on {}, ", cause.rank, cause.host);
  text += cause.signal.empty() ? fmt::format("exit code {}\n", cause.exit_code)
                               : fmt::format("ended by {}\n", cause.signal);
  if (!cause.message.empty()) text += "  " + cause.message + "\n";
  if (!cause.log.empty()) text += fmt::format("  log on {}: {}\n", cause.host, cause.log);
  return text;
}

nlohmann::ordered_json cause_json(const RootCause& cause) {
  nlohmann::ordered_json json{{"rank", cause.rank},           {"host", cause.host},
                              {"exit_code", cause.exit_code}, {"signal", nullptr},
                              {"message", cause.message},     {"log", nullptr}};
  if (!cause.signal.empty()) json["signal"] = cause.signal;
  if (!cause.log.empty()) json["log"] = cause.log;
  return json;
}

void add_report(const nlohmann::json& report, Explanation& said) {
  if (const auto cause = root_cause_of(report)) {
    said.json["root_cause"] = cause_json(*cause);
    said.text += cause_text(*cause);
  }
  if (report.is_object()) add_ranks(report, said);
}

// Returns what the user can do.
std::string usual_advice(const KnownJob& job, JobState state) {
  switch (state) {
    case JobState::lost:
      return fmt::format("lockstep resume {} starts the lost parts again", job.id);
    case JobState::queued:
      return fmt::format("lockstep cancel {} removes the job from the queue", job.id);
    case JobState::starting:
    case JobState::running:
    case JobState::restarting:
    case JobState::saving:
      return fmt::format("lockstep logs -f {} follows the output", job.id);
    case JobState::succeeded:
    case JobState::failed:
    case JobState::canceled:
      break;
  }
  return fmt::format("lockstep logs {} shows the output", job.id);
}

}  // namespace

Hang hang_in(const nlohmann::json& report) {
  Hang hang;
  const auto events = report.find("events");
  if (events == report.end() || !events->is_array()) return hang;
  // A hang of an earlier attempt did not end the job: the ranks were started again. Nor did a hang
  // that was over.
  const std::int64_t last = codec::integer_member(report, "attempts_total");
  for (const nlohmann::json& event : *events) {
    const std::string kind = codec::text_member(event, "event");
    if (kind == "hang_over") hang.words.clear();
    if (kind == "hung" && codec::integer_member(event, "attempt") == last)
      hang.words = text_of(event, "words");
  }
  const auto attempts = report.find("attempts");
  if (!hang.words.empty() && attempts != report.end() && attempts->is_array() && !attempts->empty())
    hang.folder = text_of(attempts->back(), "log_dir");
  if (!hang.folder.empty())
    hang.evidence =
        fmt::format("evidence on {}: {}/hang-*.txt", text_of(report, "node"), hang.folder);
  return hang;
}

// All nodes have the same root cause, unless they could not speak any more.
void add_reports(const std::vector<nlohmann::json>& reports, Explanation& said) {
  if (reports.empty()) return;
  const auto with_cause = std::find_if(reports.begin(), reports.end(), [](const auto& report) {
    return root_cause_of(report).has_value();
  });
  const auto& best = with_cause == reports.end() ? reports.front() : *with_cause;
  add_report(best, said);
  // Each node keeps evidence of its own.
  for (const auto& report : reports)
    if (const Hang hang = hang_in(report); &report != &best && !hang.evidence.empty())
      said.text += fmt::format("  {}\n", hang.evidence);
}

Explanation explain_job(const KnownJob& job, const JobStatus& status, const nlohmann::json& report,
                        const std::string& advice) {
  Explanation said;
  said.json = {{"id", job.id},
               {"name", job.name},
               {"on", job.place},
               {"state", state_name(status.state)},
               {"nodes", nlohmann::ordered_json::array()},
               {"reason", nullptr},
               {"root_cause", nullptr}};
  if (status.code) said.json["code"] = *status.code;
  said.text = fmt::format(
      "job {}{} on {}: {}{}\n", job.id, job.name == "-" ? "" : fmt::format(" ({})", job.name),
      job.place, state_words(status.state, status.code), status.by_person ? ", by a person" : "");
  for (const NodeStatus& node : status.nodes) {
    nlohmann::ordered_json row{{"name", node.name}, {"state", nullptr}};
    if (node.state) row["state"] = state_name(*node.state);
    if (node.code) row["code"] = *node.code;
    // JSON quotes control characters itself. Only the text for a terminal needs printable().
    if (!node.problem.empty()) row["problem"] = node.problem;
    said.json["nodes"].push_back(std::move(row));
    said.text += fmt::format("  {}: {}\n", node.name, node_words(node));
  }
  // The place's own reason comes first. The report has only the agents' view.
  const std::string reason =
      status.why.empty() && report.is_object() ? text_of(report, "reason") : status.why;
  if (!reason.empty()) {
    said.json["reason"] = reason;
    said.text += fmt::format("reason: {}\n", reason);
  }
  add_report(report, said);
  said.advice_at = said.text.size();
  said.text += (advice.empty() ? usual_advice(job, status.state) : advice) + "\n";
  return said;
}

Result<Explanation> explain_report(std::string_view text) {
  const nlohmann::json report = codec::parse_json(text, {.bytes = kMostReport});
  const std::string outcome = codec::text_member(report, "outcome");
  if (report.is_object() && report.contains("rows") && report.contains("not begun"))
    return fail(Errc::invalid_input,
                "this is the report of a sweep: the report of a failed row N is beside it, in "
                "FILE.rows/N.json");
  if (!report.is_object() || !report.contains("schema") || outcome.empty())
    return fail(Errc::corrupt, "not a report of lockstep run --report");
  JobStatus status{.state = JobState::failed};
  if (outcome == "succeeded" || outcome == "spare") status.state = JobState::succeeded;
  if (outcome == "interrupted") status.state = JobState::canceled;
  const std::string script = text_of(report, "entrypoint");
  const KnownJob job{.id = text_of(report, "run_id"),
                     .name = script.empty() ? "-" : script,
                     .place = text_of(report, "node"),
                     .command = script};
  const std::string logs = text_of(report, "log_dir");
  return explain_job(job, status, report,
                     logs.empty() ? "the run has kept no logs" : "logs: " + logs);
}

Explanation with_looks(Explanation said, const std::vector<looks::Answer>& answers) {
  if (answers.empty()) {
    said.text.insert(std::min(said.advice_at, said.text.size()), std::string(kNoAnswer) + "\n");
    return said;
  }
  said.json["looks"] = nlohmann::ordered_json::array();
  for (const looks::Answer& answer : answers)
    said.json["looks"].push_back(
        codec::parse_ordered_json(looks::answer_json(answer), {.bytes = kMostLooks}));
  said.text.insert(std::min(said.advice_at, said.text.size()), looks::answers_text(answers));
  return said;
}

std::string explanation_answer(const Result<Explanation>& said) {
  const nlohmann::ordered_json answer =
      said ? nlohmann::ordered_json{{"text", said->text}, {"json", said->json}}
           : nlohmann::ordered_json{{"error", said.error().message}, {"hint", said.error().hint}};
  return codec::print_json(answer) + "\n";
}

Result<Explanation> explanation_of(std::string_view answer) {
  constexpr std::size_t kMostLine = 2000;
  const nlohmann::ordered_json json = codec::parse_ordered_json(answer);
  const auto text = [&](const char* name) {
    const auto at = json.find(name);
    return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  if (!json.is_object() || (text("text").empty() && text("error").empty()))
    return fail(Errc::corrupt, "unexpected answer: " + printable(answer));
  if (!text("error").empty())
    return fail(Errc::not_found, printable(text("error"), kMostLine),
                printable(text("hint"), kMostLine));
  Explanation said{.text = {}, .json = json.contains("json") ? json["json"] : nullptr};
  std::string all = text("text");
  if (all.ends_with('\n')) all.pop_back();
  for (const std::string& line : split(all, '\n'))
    said.text += printable(line, kMostLine) + "\n";
  return said;
}

}  // namespace lockstep::jobs
