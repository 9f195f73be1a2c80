// Records the attempts of a job and words their durations.
#include "agent/job_history.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::agent {
namespace {

// A job longer than this gets a last line of its own.
constexpr std::int64_t kLongMs = 10'000;

template <class T>
void keep_latest(std::vector<T>& list) {
  if (list.size() > JobHistory::kMostKept) list.erase(list.begin());
}

std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

std::string_view attempt_end_word(AttemptEnd end) {
  switch (end) {
    case AttemptEnd::none:
      return "success";
    case AttemptEnd::worker:
      return "worker";
    case AttemptEnd::nodes:
      return "nodes";
    case AttemptEnd::signal:
      return "signal";
    case AttemptEnd::hang:
      return "hang";
    case AttemptEnd::watchdog:
      return "watchdog";
    case AttemptEnd::start:
      return "start";
  }
  return "success";
}

void JobHistory::attempt_started(const AttemptStart& start) {
  Attempt attempt;
  attempt.start = start;
  if (!attempts_.empty()) {
    workers_ended(start.at_ms);
    // Every node sees the restart count of the round: an unchanged count means that only the nodes
    // changed.
    const Attempt& before = attempts_.back();
    attempt.counted = start.restarts != before.start.restarts;
    if (!attempt.counted) {
      changes_.push_back(
          {before.end_ms.value_or(start.at_ms), before.why, before.start.nodes, start.nodes});
      ++changes_total_;
      keep_latest(changes_);
    }
  }
  attempts_.push_back(std::move(attempt));
  ++attempts_total_;
  keep_latest(attempts_);
}

void JobHistory::logs_in(const std::string& dir) {
  if (!attempts_.empty()) attempts_.back().log_dir = dir;
}

void JobHistory::attempt_ends(AttemptEnd end, const std::string& why, bool overrules) {
  if (attempts_.empty()) return;
  Attempt& attempt = attempts_.back();
  // The first reason is the cause. Later ones usually follow from it.
  if (attempt.end != AttemptEnd::none && !overrules) return;
  attempt.end = end;
  attempt.why = why;
}

void JobHistory::ranks_were(const std::vector<std::string>& sentences) {
  if (!attempts_.empty()) attempts_.back().others = sentences;
}

void JobHistory::workers_ended(std::int64_t at_ms) {
  if (!attempts_.empty() && !attempts_.back().end_ms) attempts_.back().end_ms = at_ms;
}

void JobHistory::job_ended(std::int64_t at_ms) {
  workers_ended(at_ms);
  end_ms_ = at_ms;
}

std::string duration_text(std::int64_t ms) {
  // Rounded to tenths, 59.95 s would print as "60.0 s".
  if (ms < 59'950) return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000);
  const std::int64_t seconds = (ms + 500) / 1000;
  const std::int64_t minutes = seconds / 60;
  if (minutes < 60) return fmt::format("{} min {} s", minutes, seconds % 60);
  const std::int64_t hours = minutes / 60;
  if (hours < 24) return fmt::format("{} h {} min", hours, minutes % 60);
  return fmt::format("{} d {} h {} min", hours / 24, hours % 24, minutes % 60);
}

bool is_worth_a_line(const JobHistory& history) {
  // No attempt: the error that ended the launcher is printed elsewhere.
  if (history.attempts_total() == 0) return false;  // nothing ran here
  return history.attempts_total() > 1 || history.restarts() > 0 || history.duration_ms() > kLongMs;
}

std::string how_it_ended(const JobHistory& history, std::string_view outcome) {
  std::string what(outcome);
  if (outcome == "interrupted") what = "was interrupted";
  if (outcome == "not_started") what = "failed: its workers could not be started";
  if (outcome == "no_rendezvous") what = "failed: its nodes could not meet again";
  std::string text = fmt::format("{} after {}, with {}", what, duration_text(history.duration_ms()),
                                 counted(history.restarts(), "restart"));
  if (history.node_changes_total() > 0)
    text += fmt::format(" and {} of nodes", counted(history.node_changes_total(), "change"));
  return text;
}

std::string last_line(const JobHistory& history, std::string_view outcome, std::string_view logs,
                      std::string_view goodput, std::string_view straggler,
                      std::string_view last_run) {
  return fmt::format("the job {}{}{}{}{}{}{}; logs: {}", how_it_ended(history, outcome),
                     goodput.empty() ? "" : "; ", goodput, straggler.empty() ? "" : "; ", straggler,
                     last_run.empty() ? "" : "; last run ", last_run, logs);
}

}  // namespace lockstep::agent
