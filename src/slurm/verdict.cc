#include "slurm/verdict.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::slurm {
namespace {

constexpr int kTimeLimit = 124;  // the code of timeout(1)
// 128 + SIGTERM.
constexpr int kStopped = 143;
constexpr std::size_t kMostText = 500;

// Converts Python's exit code, negative for signals, to a shell's.
int shell_code(std::int64_t python_code) {
  const std::int64_t code = python_code < 0 ? 128 - python_code : python_code;
  return code > 0 && code <= 255 ? static_cast<int>(code) : 1;
}

std::string how(std::int64_t python_code) {
  if (python_code < 0) return fmt::format("was killed by signal {}", -python_code);
  return fmt::format("exited with {}", python_code);
}

std::string root_words(const BlamedFailure& root) {
  const std::string host = printable(root.host, kMostText);
  const std::string message = printable(root.message, kMostText);
  if (!root.rank) return host + ": " + message;
  std::string words = fmt::format("rank {} on {} {}", *root.rank, host, how(root.exit_code));
  // printable() has escaped the line breaks; keep the first line.
  if (!message.empty()) words += ": " + message.substr(0, message.find("\\x0a"));
  return words;
}

bool has(const std::vector<NodeReport>& reports, Outcome outcome) {
  return std::any_of(reports.begin(), reports.end(),
                     [&](const NodeReport& each) { return each.outcome == outcome; });
}

// Returns the earliest failure: agents that were cut off may report other, later ones. In a stopped
// job Slurm signals the ranks itself, and a rank that dies of that SIGTERM has not failed.
const NodeReport* first_failure(const BatchFacts& facts, const std::vector<NodeReport>& reports) {
  const bool stopped = facts.lead_signal || facts.stop_signal || has(reports, Outcome::interrupted);
  const NodeReport* first = nullptr;
  for (const NodeReport& report : reports)
    if (report.outcome == Outcome::failed && report.code &&
        !(stopped && *report.code == kStopped) &&
        (first == nullptr || report.failed_ms < first->failed_ms))
      first = &report;
  return first;
}

// Judges a job in which no agent reported success. The order matters: a worker's failure explains
// later stops and losses.
Verdict of_unfinished(const BatchFacts& facts, const std::vector<NodeReport>& reports) {
  if (const NodeReport* failure = first_failure(facts, reports); failure != nullptr)
    return {Cause::worker, *failure->code, failure->root_cause};
  if (facts.lead_signal) return time_limit_verdict();
  if (facts.stop_signal || has(reports, Outcome::interrupted))
    return {Cause::stopped, kStopped, "the job was stopped"};
  for (const NodeReport& report : reports)
    if (report.outcome == Outcome::unfit) return {Cause::unfit, kUnfitCode, report.reason};
  for (const NodeReport& report : reports)
    if (report.outcome == Outcome::failed && !report.reason.empty())
      return {Cause::node_lost, 1, report.reason};
  for (const NodeReport& report : reports)
    if (report.outcome == Outcome::refused)
      return {Cause::not_started, facts.step_code == 0 ? 1 : facts.step_code,
              report.node + ": " + report.reason};
  if (reports.empty())
    return {Cause::not_started, facts.step_code == 0 ? 1 : facts.step_code,
            "no agent has reported anything"};
  return {Cause::node_lost, facts.step_code == 0 ? 1 : facts.step_code,
          "nodes ended without a report"};
}

}  // namespace

Result<NodeReport> read_report(std::string_view text) {
  LOCKSTEP_TRY_ASSIGN(const AgentReport report, read_agent_report(text));
  return judged_report(report);
}

NodeReport judged_report(const AgentReport& report) {
  NodeReport judged{.node = printable(report.node, kMostText),
                    .outcome = report.outcome,
                    .reason = printable(report.reason, kMostText),
                    .nodes = report.last_nodes};
  const auto& root = report.root_cause;
  // A worker stopped by the agent is not the cause of the failure.
  if (!root || root->exit_code == 0 || root->after_stop || !report.reason.empty()) return judged;
  judged.code = shell_code(root->exit_code);
  judged.failed_ms = root->time_ms;
  judged.root_cause = root_words(*root);
  return judged;
}

// Each report has the number of nodes in the agent's last attempt. Earlier attempts may have had
// more nodes.
bool have_all_reported(const std::vector<NodeReport>& reports) {
  int most = 0;
  int took_part = 0;
  for (const NodeReport& each : reports) {
    most = std::max(most, each.nodes);
    took_part += each.nodes > 0 ? 1 : 0;
  }
  return most > 0 && took_part >= most;
}

std::string_view cause_name(Cause cause) {
  switch (cause) {
    case Cause::success:
      return "success";
    case Cause::worker:
      return "worker";
    case Cause::node_lost:
      return "node lost";
    case Cause::time_limit:
      return "time limit";
    case Cause::stopped:
      return "stopped";
    case Cause::script:
      return "script";
    case Cause::unfit:
      return "bad node";
    case Cause::not_started:
      break;
  }
  return "not started";
}

bool is_requeued(const RequeueRule& rule, Cause cause, const std::vector<std::string>& earlier) {
  if (!rule.asked) return false;
  const auto runs = [&](Cause of) {
    return std::count(earlier.begin(), earlier.end(), cause_name(of));
  };
  if (cause == Cause::time_limit)
    return !rule.most_limits || runs(Cause::time_limit) < *rule.most_limits;
  if (cause != Cause::node_lost && cause != Cause::unfit) return false;
  return runs(Cause::node_lost) + runs(Cause::unfit) < rule.most_losses;
}

Verdict judge(const BatchFacts& facts, const std::vector<NodeReport>& reports,
              const std::vector<std::string>& expected) {
  // One report of success is enough: all agents agree on success, and lost nodes were replaced.
  Verdict verdict = has(reports, Outcome::succeeded)
                        ? Verdict{Cause::success, 0, "all ranks have succeeded"}
                        : of_unfinished(facts, reports);
  for (const std::string& node : expected)
    if (std::none_of(reports.begin(), reports.end(),
                     [&](const NodeReport& each) { return each.node == node; }))
      verdict.silent.push_back(node);
  return verdict;
}

Verdict time_limit_verdict() {
  return {Cause::time_limit, kTimeLimit, "the time limit came near, and the workers were stopped"};
}

Verdict judge_script(const BatchFacts& facts, const std::optional<Verdict>& launch) {
  const bool failed = launch && launch->cause != Cause::success;
  Verdict verdict = launch.value_or(Verdict{});
  // A script that still succeeded after the signal has succeeded.
  if (facts.lead_signal && (failed || facts.step_code != 0)) {
    const Verdict limit = time_limit_verdict();
    verdict.cause = limit.cause;
    verdict.code = limit.code;
    verdict.words = limit.words;
  } else if (facts.step_code == 0) {
    verdict.cause = Cause::success;
    verdict.code = 0;
    verdict.words = "the script has succeeded";
  } else if (facts.stop_signal) {
    verdict.cause = Cause::stopped;
    verdict.code = facts.step_code;
    verdict.words = "the job was stopped";
  } else {
    if (!failed) {
      verdict.cause = Cause::script;
      verdict.words = fmt::format("the script ended with {}", facts.step_code);
    }
    verdict.code = facts.step_code;
  }
  return verdict;
}

Verdict judge_orphan(Verdict launch, std::string_view host) {
  if (launch.cause == Cause::success)
    launch.words = fmt::format(
        "all ranks have succeeded; the script's later commands did not run, because its shell "
        "died with {}",
        host);
  launch.noted = true;
  return launch;
}

}  // namespace lockstep::slurm
