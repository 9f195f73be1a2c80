#include "slurm/verdict.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

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

using Reports = std::vector<NodeReport>;

// Returns the first report that matches; nullptr: none does.
template <class Match>
const NodeReport* find(const Reports& reports, Match match) {
  const auto found = std::find_if(reports.begin(), reports.end(), match);
  return found == reports.end() ? nullptr : &*found;
}

const NodeReport* find(const Reports& reports, Outcome outcome) {
  return find(reports, [&](const NodeReport& each) { return each.outcome == outcome; });
}

bool has(const Reports& reports, Outcome outcome) {
  return find(reports, outcome) != nullptr;
}

// Returns whether an agent that has reported had ranks.
bool have_begun(const Reports& reports) {
  return find(reports, [](const NodeReport& each) { return each.nodes > 0; }) != nullptr;
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

// Judges a job whose ranks did not move. nullopt: they did. Ranks of other nodes may have failed
// since, because their peers were gone, so this comes before a worker's failure.
std::optional<Verdict> of_hung(const Reports& reports) {
  for (const auto& [end, cause] :
       {std::pair(AttemptEnd::hang, Cause::hang), std::pair(AttemptEnd::watchdog, Cause::watchdog)})
    for (const NodeReport& each : reports)
      // Another reason came later: a node was lost while --on-hang restart stopped the workers.
      if (each.outcome == Outcome::failed && each.last_end == end &&
          (each.reason.empty() || each.reason == each.last_why))
        return Verdict{cause, 1, each.last_why};
  return std::nullopt;
}

// Judges agents that ended although no worker failed by itself. nullopt: their reports give no
// reason. missing: a node has not reported.
std::optional<Verdict> of_reasons(const BatchFacts& facts, const Reports& reports, bool missing) {
  if (const NodeReport* idle = find(reports, Outcome::not_started))
    return Verdict{Cause::not_started, 1, idle->node + ": " + idle->reason};
  for (const NodeReport& report : reports)
    if (report.outcome == Outcome::failed && !report.reason.empty())
      return Verdict{Cause::node_lost, 1, report.reason};
  // Nodes that had met lost a node later, whatever another node has refused.
  if (const NodeReport* left = find(reports, [](const NodeReport& each) {
        return each.outcome == Outcome::no_rendezvous && each.nodes > 0;
      }))
    return Verdict{Cause::node_lost, 1, left->node + ": " + left->reason};
  if (const NodeReport* refused = find(reports, Outcome::refused))
    return Verdict{Cause::not_started, std::max(facts.step_code, 1),
                   refused->node + ": " + refused->reason};
  const NodeReport* waited = find(reports, Outcome::no_rendezvous);
  if (waited == nullptr) return std::nullopt;
  // Nodes that are all there and never met have another problem than a lost node.
  return Verdict{missing ? Cause::node_lost : Cause::not_started, 1,
                 waited->node + ": " + waited->reason};
}

// Judges a job in which no agent reported success. The order matters: a worker's failure explains
// later stops and losses.
Verdict of_unfinished(const BatchFacts& facts, const Reports& reports, bool missing) {
  if (auto hung = of_hung(reports)) return std::move(*hung);
  if (const NodeReport* failure = first_failure(facts, reports); failure != nullptr)
    return {Cause::worker, *failure->code, failure->root_cause};
  if (facts.lead_signal) return time_limit_verdict();
  // The batch step ends agents that wait for a node that has refused.
  const bool refused = !have_begun(reports) && has(reports, Outcome::refused);
  if (facts.stop_signal || (has(reports, Outcome::interrupted) && !refused))
    return {Cause::stopped, kStopped, "the job was stopped"};
  if (const NodeReport* unfit = find(reports, Outcome::unfit))
    return {Cause::unfit, kUnfitCode, unfit->reason};
  if (auto verdict = of_reasons(facts, reports, missing)) return std::move(*verdict);
  const int code = std::max(facts.step_code, 1);
  if (reports.empty()) return {Cause::not_started, code, "no agent has reported anything"};
  return {Cause::node_lost, code, "nodes ended without a report"};
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
                    .nodes = report.last_nodes,
                    .last_end = report.last_end,
                    .last_why = printable(report.last_why, kMostText)};
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

bool lacks_nodes(const Reports& reports, int to_spare, std::string_view host) {
  const auto count = [&](Outcome outcome) {
    return std::count_if(reports.begin(), reports.end(),
                         [&](const NodeReport& each) { return each.outcome == outcome; });
  };
  const auto refused = count(Outcome::refused);
  const auto left_out = count(Outcome::left_out);
  // Once a node has had ranks, the nodes have met without `host`.
  const bool may_meet_elsewhere = left_out > 0 || have_begun(reports);
  const bool no_host =
      !may_meet_elsewhere && find(reports, [&](const NodeReport& each) {
                               return each.outcome == Outcome::refused && each.node == host;
                             }) != nullptr;
  return refused > 0 && (refused + left_out > to_spare || no_host);
}

std::string_view cause_name(Cause cause) {
  switch (cause) {
    case Cause::success:
      return "success";
    case Cause::worker:
      return "worker";
    case Cause::node_lost:
      return "node lost";
    case Cause::hang:
      return "hang";
    case Cause::watchdog:
      return "watchdog";
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
  std::vector<std::string> silent;
  for (const std::string& node : expected)
    if (find(reports, [&](const NodeReport& each) { return each.node == node; }) == nullptr)
      silent.push_back(node);
  // One report of success is enough: all agents agree on success, and lost nodes were replaced.
  Verdict verdict = has(reports, Outcome::succeeded)
                        ? Verdict{Cause::success, 0, "all ranks have succeeded"}
                        : of_unfinished(facts, reports, !silent.empty());
  verdict.silent = std::move(silent);
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
