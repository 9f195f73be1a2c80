#include "agent/failure_report.h"

#include "agent/failure_json.h"
#include "base/text.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <signal.h>
#include <string.h>
#include <time.h>

#include <algorithm>

namespace lockstep::agent {
namespace {

constexpr std::size_t kMaxWidth = 60;
constexpr std::string_view kNoTraceback =
    "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";

// Python's datetime.fromtimestamp(seconds).isoformat(sep="_"), in local time.
std::string local_time(std::int64_t unix_ms) {
  const time_t seconds = static_cast<time_t>(unix_ms / 1000);
  struct tm parts {};
  if (localtime_r(&seconds, &parts) == nullptr) return "<N/A>";
  char text[64];
  const std::size_t size = strftime(text, sizeof text, "%Y-%m-%d_%H:%M:%S", &parts);
  return {text, size};
}

// In characters, as Python's len() counts; the sum of valid UTF-8 is exact.
std::size_t width_of(std::string_view line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::size_t widest_line(std::string_view text) {
  std::size_t width = 0;
  while (true) {
    const std::size_t end = text.find('\n');
    width = std::max(width, width_of(text.substr(0, end)));
    if (end == std::string_view::npos) return width;
    text.remove_prefix(end + 1);
  }
}

std::string extra_lines(const WorkerFailure& failure) {
  std::string text;
  for (const auto& note : failure.notes)
    text += "\n  note      : " + note;
  if (failure.error || failure.stderr_tail.empty()) return text;
  const std::size_t count = failure.stderr_tail.size();
  text +=
      fmt::format("\n  {} : last {} line{}:", failure.tail_holds_stdout ? "output   " : "stderr   ",
                  count, count == 1 ? "" : "s");
  for (const auto& line : failure.stderr_tail)
    text += "\n    " + line;
  return text;
}

std::string format_entry(std::size_t index, const WorkerFailure& failure) {
  const std::string signal =
      failure.exit_code < 0 ? fmt::format(" ({})", proc::signal_name(-failure.exit_code)) : "";
  std::string text = fmt::format("[{}]:\n", index);
  text += fmt::format("  time      : {}\n", local_time(failure_time_ms(failure)));
  text += fmt::format("  host      : {}\n", failure.host);
  text +=
      fmt::format("  rank      : {} (local_rank: {})\n", failure.global_rank, failure.local_rank);
  text += fmt::format("  exitcode  : {} (pid: {}) {}\n", failure.exit_code, failure.pid, signal);
  text += fmt::format("  error_file: {}\n",
                      failure.error && failure.error_file ? *failure.error_file : "<N/A>");
  text += "  traceback : " + failure_message(failure);
  return text + extra_lines(failure);
}

}  // namespace

nlohmann::ordered_json failure_as_json(const WorkerFailure& failure) {
  nlohmann::ordered_json json;
  json["rank"] = failure.global_rank;
  json["local_rank"] = failure.local_rank;
  json["host"] = failure.host;
  json["pid"] = failure.pid;
  json["exit_code"] = failure.exit_code;
  json["signal"] = nullptr;
  if (failure.exit_code < 0) json["signal"] = proc::signal_name(-failure.exit_code);
  json["time_ms"] = failure_time_ms(failure);
  json["error_file"] = nullptr;
  if (failure.error && failure.error_file) json["error_file"] = *failure.error_file;
  json["message"] = failure.error ? failure.error->text : failure_message(failure);
  json["notes"] = failure.notes;
  json["stderr_tail"] = failure.stderr_tail;
  json["after_stop"] = failure.after_stop;
  return json;
}

bool is_consequence(const FailureReport& report, const WorkerFailure& failure) {
  if (!failure.after_stop) return false;
  return !(failure.error && failure.error->time_ms && report.stop_sent_ms &&
           *failure.error->time_ms < *report.stop_sent_ms);
}

std::int64_t failure_time_ms(const WorkerFailure& failure) {
  if (failure.error && failure.error->time_ms) return *failure.error->time_ms;
  return failure.seen_ms;
}

namespace {
// Among so many first ones.
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
  if (report.event_counts && !report.event.empty()) return std::nullopt;
  const std::size_t all = report.failures.size();
  const std::size_t among = std::min(all, report.root_among.value_or(all));
  if (const auto first = earliest(report, among, false)) return first;
  if (const auto first = earliest(report, all, false)) return first;
  return report.event.empty() ? earliest(report, among, true) : std::nullopt;
}

const std::string* root_event(const FailureReport& report) {
  return report.event.empty() || root_cause(report) ? nullptr : &report.event;
}

namespace {
// The text is a worker's: its lines and tabs are kept, but it must not steer the terminal.
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

namespace {
// "1 worker was stopped: rank 0 on node1"
std::string stopped_line(const FailureReport& report) {
  constexpr std::size_t kMost = 8;
  const auto& failures = report.failures;
  if (failures.empty()) return {};
  const std::size_t count = failures.size();
  std::string text =
      fmt::format("\n  {} worker{} stopped: ", count, count == 1 ? " was" : "s were");
  for (std::size_t i = 0; i < std::min(count, kMost); ++i)
    text += fmt::format("{}rank {} on {}", i == 0 ? "" : ", ", failures[i].global_rank,
                        failures[i].host);
  return count > kMost ? text + fmt::format(" and {} more", count - kMost) : text;
}

std::string format_event(const FailureReport& report, const std::string& event) {
  const std::string title = report.title + " FAILED";
  const std::string text = "  " + event + stopped_line(report);
  const std::size_t width = std::min(std::max(width_of(title), widest_line(text)), kMaxWidth);
  const std::string border(width, '=');
  const std::string rule(width, '-');
  return fmt::format("{}\n{}\n{}\nRoot Cause (no worker failed by itself):\n{}\n{}", border, title,
                     rule, text, border);
}
}  // namespace

std::string format_report(const FailureReport& report) {
  if (const std::string* event = root_event(report)) return format_event(report, *event);
  const std::string title = report.title + " FAILED";
  const auto root = root_cause(report);
  std::size_t width = width_of(title);
  std::string root_entry;
  std::string others;
  for (std::size_t i = 0; i < report.failures.size(); ++i) {
    const std::string entry = format_entry(i, report.failures[i]);
    width = std::max(width, widest_line(entry));
    if (root == i) {
      root_entry = entry;
    } else {
      others += entry + "\n";
    }
  }
  if (others.empty()) others = "  <NO_OTHER_FAILURES>\n";
  const std::string border(std::min(width, kMaxWidth), '=');
  const std::string rule(std::min(width, kMaxWidth), '-');
  return fmt::format("{}\n{}\n{}\nFailures:\n{}{}\nRoot Cause (first observed failure):\n{}\n{}",
                     border, title, rule, others, rule, root_entry, border);
}

std::string report_json(const FailureReport& report) {
  nlohmann::ordered_json json;
  json["version"] = 1;
  json["run_id"] = report.run_id;
  json["outcome"] = report.outcome;
  json["entrypoint"] = report.title;
  json["reason"] = nullptr;
  if (const std::string* event = root_event(report)) json["reason"] = *event;
  json["root_cause"] = nullptr;
  if (const auto root = root_cause(report))
    json["root_cause"] = failure_as_json(report.failures[*root]);
  json["failures"] = nlohmann::ordered_json::array();
  for (const auto& failure : report.failures)
    json["failures"].push_back(failure_as_json(failure));
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::agent
