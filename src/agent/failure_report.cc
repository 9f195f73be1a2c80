// Chooses the root cause of a failed job and words single failures. report_text.cc lays out the
// whole report.
#include "agent/failure_report.h"

#include "base/last_line.h"
#include "base/text.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace lockstep::agent {
namespace {

// torchrun prints this text word for word where a worker left no record.
constexpr std::string_view kNoTraceback =
    "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";

// Bytes of a worker's last words in a one-line message.
constexpr std::size_t kMostWords = 200;

}  // namespace

bool is_consequence(const FailureReport& report, const WorkerFailure& failure) {
  if (!failure.after_stop) return false;
  // A record older than the agent's own stop proves that the worker failed by itself, even if its
  // end was seen later.
  return !(failure.error && failure.error->time_ms && report.stop_sent_ms &&
           *failure.error->time_ms < *report.stop_sent_ms);
}

std::int64_t failure_time_ms(const WorkerFailure& failure) {
  if (failure.error && failure.error->time_ms) return *failure.error->time_ms;
  return failure.seen_ms;
}

namespace {
// Returns the earliest failure among the first `among` ones. Consequences count only if
// `consequences` is set.
std::optional<std::size_t> earliest(const FailureReport& report, std::size_t among,
                                    bool consequences) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < among; ++i) {
    const WorkerFailure& failure = report.failures[i];
    if (!consequences && is_consequence(report, failure)) continue;
    if (!best || failure_time_ms(failure) < failure_time_ms(report.failures[*best])) best = i;
  }
  return best;
}
}  // namespace

std::optional<std::size_t> root_cause(const FailureReport& report) {
  // An event that ended the job by itself (event_counts) beats any failed worker.
  if (report.event_counts && !report.event.empty()) return std::nullopt;
  const std::size_t all = report.failures.size();
  const std::size_t among = std::min(all, report.root_among.value_or(all));
  // Clocks of nodes differ, so only times within the node that failed first are compared.
  if (const auto first = earliest(report, among, false)) return first;
  if (const auto first = earliest(report, all, false)) return first;
  return report.event.empty() ? earliest(report, among, true) : std::nullopt;
}

const std::string* root_event(const FailureReport& report) {
  return report.event.empty() || root_cause(report) ? nullptr : &report.event;
}

namespace {
// Makes a worker's text safe for the terminal: keeps line breaks and tabs, removes control
// sequences.
std::string harmless(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\n\t", at), text.size());
    out += printable(text.substr(at, end - at), std::string_view::npos);
    if (end < text.size()) out += text[end];
    at = end + 1;
  }
  return out;
}
}  // namespace

std::string failure_message(const WorkerFailure& failure) {
  if (failure.error && !failure.error->text.empty()) {
    std::string text = harmless(failure.error->text);
    // torchrun indents the later lines of a structured record by two blanks, but not of a plain
    // record.
    if (failure.error->form != ErrorRecord::Form::plain) replace_all(text, "\n", "\n  ");
    return text;
  }
  if (failure.exit_code < 0)
    return fmt::format("Signal {} ({}) received by PID {}", -failure.exit_code,
                       proc::signal_name(-failure.exit_code), failure.pid);
  return std::string(kNoTraceback);
}

std::string failed_line(const WorkerFailure& failure, std::string_view binary) {
  return fmt::format("failed (exitcode: {}) local_rank: {} (pid: {}) of binary: {}",
                     failure.exit_code, failure.local_rank, failure.pid, binary);
}

std::string last_words(const WorkerFailure& failure) {
  const auto last_words_of = [](std::string_view text) {
    return printable(lockstep::last_line(text), kMostWords);
  };
  if (failure.error) {
    std::string words = last_words_of(failure.error->message);
    if (words.empty()) words = last_words_of(failure.error->text);
    if (!words.empty()) return words;
  }
  if (!failure.notes.empty()) return failure.notes.front();
  for (auto line = failure.stderr_tail.rbegin(); line != failure.stderr_tail.rend(); ++line)
    if (std::string words = last_words_of(*line); !words.empty()) return words;
  return {};
}

std::string failure_line(const WorkerFailure& failure) {
  const std::string signal =
      failure.exit_code < 0 ? ", " + proc::signal_name(-failure.exit_code) : "";
  const std::string words = last_words(failure);
  return fmt::format("rank {} on {} failed (exitcode: {}{}){}{}", failure.global_rank, failure.host,
                     failure.exit_code, signal, words.empty() ? "" : ": ", words);
}

std::vector<std::size_t> in_rank_order(const FailureReport& report) {
  std::vector<std::size_t> order(report.failures.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&report](std::size_t a, std::size_t b) {
    const WorkerFailure& first = report.failures[a];
    const WorkerFailure& second = report.failures[b];
    return std::tie(first.global_rank, first.host) < std::tie(second.global_rank, second.host);
  });
  return order;
}

}  // namespace lockstep::agent
