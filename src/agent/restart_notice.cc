// Words the restart line.
#include "agent/restart_notice.h"

#include <fmt/core.h>

namespace lockstep::agent {
namespace {

// Formats ": rank 3 on n1 failed (exitcode: 1): ValueError: x; log: /logs/attempt_0/3/stderr.log".
std::string why_again(const JobHistory& history, const FailureReport& before) {
  if (history.attempts().empty()) return {};
  const Attempt& attempt = history.attempts().back();
  const auto root = root_cause(before);
  if (attempt.end != AttemptEnd::worker || !root)
    return attempt.why.empty() ? "" : ": " + attempt.why;
  const WorkerFailure& failure = before.failures[*root];
  std::string log = failure.stderr_log.empty() ? failure.stdout_log : failure.stderr_log;
  if (log.empty() && failure.error_file) log = *failure.error_file;
  return ": " + failure_line(failure) + (log.empty() ? "" : "; log: " + log);
}

}  // namespace

std::string restart_notice(const RestartFacts& facts, const JobHistory& history,
                           const FailureReport& before) {
  const std::string why = why_again(history, before);
  if (!facts.counted)
    return fmt::format(
        "starting the workers of this node again with {} node{} (this is not counted as a "
        "restart){}",
        facts.nodes, facts.nodes == 1 ? "" : "s", why);
  // Restarts are counted here. An attempt's number, which other lines show, counts changes of
  // nodes, too.
  return fmt::format("restarting all workers of this node (restart {} of {}){}", facts.restarts,
                     facts.restarts + facts.restarts_left, why);
}

}  // namespace lockstep::agent
