// Makes the failure report and the exit code from the way the job ended.
#include "agent/job_end.h"

#include "base/log.h"
#include "base/text.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <iterator>

namespace lockstep::agent {
namespace {

std::string with_hint(const std::optional<Error>& error) {
  if (!error) return {};
  return error->message + (error->hint.empty() ? "" : "; " + error->hint);
}

// Describes the reason, other than a worker's failure, that ended the job. Empty: there is none.
std::string ending_event(const JobEnd& end) {
  switch (end.outcome) {
    case Outcome::signaled:
    case Outcome::signaled_early:
      return fmt::format("{} was ended by {}", end.node, proc::signal_name(end.signal));
    case Outcome::spawn_failed:
      return "workers could not be started: " + with_hint(end.start_error);
    case Outcome::no_rendezvous:
      return with_hint(end.rendezvous_error);
    case Outcome::succeeded:
    case Outcome::spare:
      return {};
    case Outcome::failed:
    case Outcome::stuck:
    case Outcome::peer_failed:
      break;
  }
  return end.why_stopped;
}

}  // namespace

std::string outcome_word(Outcome outcome) {
  switch (outcome) {
    case Outcome::succeeded:
      return "succeeded";
    case Outcome::spare:
      return "spare";
    case Outcome::failed:
    case Outcome::stuck:
    case Outcome::peer_failed:
      return "failed";
    case Outcome::no_rendezvous:
      return "no_rendezvous";
    case Outcome::signaled:
    case Outcome::signaled_early:
      return "interrupted";
    case Outcome::spawn_failed:
      return "not_started";
  }
  return "failed";
}

FailureReport own_report(const JobEnd& end) {
  FailureReport report;
  report.title = end.title;
  report.run_id = end.run_id;
  report.image = end.image;
  report.outcome = outcome_word(end.outcome);
  if (end.outcome == Outcome::succeeded || end.outcome == Outcome::spare) return report;
  report.event = ending_event(end);
  report.others = end.others;
  // These jobs ended because no next attempt was possible, no matter how the last attempt went.
  report.event_counts =
      end.outcome == Outcome::spawn_failed || end.outcome == Outcome::no_rendezvous;
  report.failures = end.failures;
  report.stop_sent_ms = end.stop_sent_ms;
  return report;
}

FailureReport whole_report(const FailureReport& own,
                           const std::vector<rendezvous::NodeReport>& nodes) {
  FailureReport report = own;
  if (nodes.empty()) return report;
  report.failures.clear();
  report.stop_sent_ms.reset();  // this node's clock; the failures come from all nodes
  for (const rendezvous::NodeReport& node : nodes) {
    auto failures = parse_failures(node.text);
    if (!failures) {
      log::warning("the failures that {} reports make no sense: {}", printable(node.host),
                   failures.error().message);
      continue;
    }
    std::move(failures->begin(), failures->end(), std::back_inserter(report.failures));
    // Nodes report in the order in which they failed: the first node with failures holds the root
    // cause.
    if (!report.root_among && !report.failures.empty()) report.root_among = report.failures.size();
  }
  return report;
}

int exit_code(const JobEnd& end, const FailureReport& report, launch::ExitCodeMode mode) {
  switch (end.outcome) {
    case Outcome::succeeded:
    case Outcome::spare:
      return 0;
    case Outcome::signaled_early:
      // Before any worker started, act as if the signal had not been caught: 128 + signal, as
      // torchrun does.
      return 128 + end.signal;
    case Outcome::signaled:
      // A handled signal gives 1, as torchrun does. An unlisted one (ALRM ...) keeps its default
      // exit code.
      return end.default_signal ? 128 + end.signal : 1;
    case Outcome::spawn_failed:
    case Outcome::no_rendezvous:
      return 1;
    case Outcome::failed:
    case Outcome::stuck:
    case Outcome::peer_failed:
      break;
  }
  const auto root = root_cause(report);
  if (mode != launch::ExitCodeMode::worker || !root) return 1;
  const int code = report.failures[*root].exit_code;
  return code < 0 ? 128 - code : code;
}

}  // namespace lockstep::agent
