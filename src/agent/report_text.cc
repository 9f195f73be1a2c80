// Lays out the failure report for a terminal (failure_report.h). The layout is torchrun's, byte for
// byte, wherever torchrun prints the same fact.
#include "agent/failure_report.h"
#include "agent/rank_list.h"
#include "base/text.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <signal.h>
#include <time.h>

#include <algorithm>

namespace lockstep::agent {
namespace {

// Length limit of borders and rules, as in torchrun.
constexpr std::size_t kMaxWidth = 60;
// Limit of failures shown beside the root cause. The failures of a whole cluster mostly repeat each
// other.
constexpr std::size_t kMostShort = 8;
constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kPlain = "\x1b[0m";

// Formats local time as Python's datetime.fromtimestamp(seconds).isoformat(sep="_").
std::string local_time(std::int64_t unix_ms) {
  const time_t seconds = static_cast<time_t>(unix_ms / 1000);
  struct tm parts {};
  if (localtime_r(&seconds, &parts) == nullptr) return "<N/A>";
  char text[64];
  const std::size_t size = strftime(text, sizeof text, "%Y-%m-%d_%H:%M:%S", &parts);
  return {text, size};
}

// Width in characters, as Python's len() counts. Exact for valid UTF-8.
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

bool holds_traceback(const std::vector<std::string>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("Traceback (most recent call last)") != std::string::npos ||
           // The first line of the traceback may be cut off.
           line.find("  File \"") != std::string::npos;
  });
}

std::string tail_name(const WorkerFailure& failure) {
  return failure.tail_holds_stdout ? "output" : "stderr";
}

// If the stderr tail shows a traceback, point to the tail instead of printing torchrun's advice on
// how to get one.
std::string traceback_of(const WorkerFailure& failure) {
  const bool unknown = !failure.error && failure.exit_code >= 0;
  if (unknown && holds_traceback(failure.stderr_tail))
    return fmt::format("see {} below", tail_name(failure));
  return failure_message(failure);
}

std::string logs_of(const WorkerFailure& failure) {
  std::string text;
  for (const std::string* path : {&failure.stderr_log, &failure.stdout_log})
    if (!path->empty())
      text += fmt::format("\n  {}{}", text.empty() ? "logs      : " : "            ",
                          printable(*path, std::string_view::npos));
  return text;
}

std::string others_of(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences)
    text += "\n  others    : " + sentence;
  return text;
}

std::string extra_lines(const WorkerFailure& failure) {
  std::string text;
  for (const auto& note : failure.notes)
    text += "\n  note      : " + note;
  text += others_of(failure.others) + logs_of(failure);
  if (failure.error || failure.stderr_tail.empty()) return text;
  const std::size_t count = failure.stderr_tail.size();
  text +=
      fmt::format("\n  {}    : last {} line{}:", tail_name(failure), count, count == 1 ? "" : "s");
  for (const auto& line : failure.stderr_tail)
    text += "\n    " + line;
  return text;
}

std::string host_and_rank(const WorkerFailure& failure) {
  return fmt::format("  host      : {}\n  rank      : {} (local_rank: {})\n", failure.host,
                     failure.global_rank, failure.local_rank);
}

std::string exit_of(const WorkerFailure& failure) {
  const std::string signal =
      failure.exit_code < 0 ? fmt::format(" ({})", proc::signal_name(-failure.exit_code)) : "";
  return fmt::format("  exitcode  : {} (pid: {}) {}\n", failure.exit_code, failure.pid, signal);
}

// One entry in full, without extra_lines().
std::string entry(std::size_t index, const WorkerFailure& failure) {
  std::string text = fmt::format("[{}]:\n", index);
  text += fmt::format("  time      : {}\n", local_time(failure_time_ms(failure)));
  text += host_and_rank(failure) + exit_of(failure);
  text += fmt::format("  error_file: {}\n",
                      failure.error && failure.error_file ? *failure.error_file : "<N/A>");
  return text + "  traceback : " + traceback_of(failure);
}

// A failure beside the root cause, cut to its distinguishing lines.
std::string short_entry(std::size_t index, const WorkerFailure& failure) {
  std::string words = last_words(failure);
  if (words.empty() && failure.exit_code < 0) words = failure_message(failure);
  return fmt::format("[{}]:\n{}{}  traceback : {}{}", index, host_and_rank(failure),
                     exit_of(failure), words.empty() ? "<N/A>" : words, logs_of(failure));
}

// The workers of one sentence.
struct Folded {
  std::vector<RankOnHost> workers;

  void add(const WorkerFailure& failure) { workers.push_back({failure.global_rank, failure.host}); }
  // Formats "  2 workers <was or were>: ranks 0-1 on n1\n". Returns "" without workers.
  std::string line(std::string_view was, std::string_view were) const {
    if (workers.empty()) return {};
    const bool one = workers.size() == 1;
    return fmt::format("  {} worker{} {}: {}\n", workers.size(), one ? "" : "s", one ? was : were,
                       rank_list(workers));
  }
};

// The workers that agents stopped. They did not fail, so they take as few lines as possible.
struct Stopped {
  Folded told;    // ended by the signal they got
  Folded killed;  // ignored that signal
  Folded other;   // ended in another way after the signal

  void add(const WorkerFailure& failure) {
    switch (-failure.exit_code) {
      case SIGTERM:
      case SIGINT:
      case SIGHUP:
      case SIGQUIT:
        return told.add(failure);
      case SIGKILL:
        return killed.add(failure);
      default:
        return other.add(failure);
    }
  }
  std::string lines() const {
    return told.line("was stopped", "were stopped") +
           killed.line("was stopped by SIGKILL", "were stopped by SIGKILL") +
           other.line("failed while it was stopped", "failed while they were stopped");
  }
};

// Everything but the root cause.
std::string others_text(const FailureReport& report, std::optional<std::size_t> root, bool all) {
  std::string text;
  Stopped stopped;
  Folded more;
  std::size_t shown = 0;
  const std::vector<std::size_t> order = in_rank_order(report);
  for (std::size_t place = 0; place < order.size(); ++place) {
    const WorkerFailure& failure = report.failures[order[place]];
    if (root == order[place]) continue;
    if (all) {
      text += entry(place, failure) + extra_lines(failure) + "\n";
    } else if (is_consequence(report, failure)) {
      stopped.add(failure);
    } else if (shown++ < kMostShort) {
      text += short_entry(place, failure) + "\n";
    } else {
      more.add(failure);
    }
  }
  // torchrun prints this line where only one worker failed.
  if (text.empty() && root) text = "  <NO_OTHER_FAILURES>\n";
  return text + more.line("failed as well", "failed as well") + stopped.lines();
}

std::string painted(const std::string& lines, bool colour) {
  if (!colour) return lines;
  std::string text;
  for (const std::string& line : split(lines, '\n'))
    // Each line is coloured by itself: a log viewer may cut the text at any line break.
    text += fmt::format("{}{}{}{}", text.empty() ? "" : "\n", kRed, line, kPlain);
  return text;
}

}  // namespace

std::string format_report(const FailureReport& report, const ReportStyle& style) {
  const std::string title = report.title + " FAILED";
  const auto root = root_cause(report);
  const std::string* event = root_event(report);
  const std::string others = others_text(report, root, style.all);
  std::string heading = "Root Cause (first observed failure):";
  std::string cause;
  std::string details;
  const std::string image =
      report.image.empty() ? "" : "\n  image     : " + printable(report.image);
  if (event != nullptr) {
    heading = "Root Cause (no worker failed by itself):";
    cause = "  " + *event;
    details = image + others_of(report.others);
  } else if (root) {
    const std::vector<std::size_t> order = in_rank_order(report);
    const auto place = std::find(order.begin(), order.end(), *root) - order.begin();
    cause = entry(static_cast<std::size_t>(place), report.failures[*root]);
    details = image + extra_lines(report.failures[*root]);
  }
  std::size_t width = std::max(width_of(title), widest_line(cause + details));
  width = std::min(std::max(width, widest_line(others)), kMaxWidth);
  const std::string border(width, '=');
  const std::string rule(width, '-');
  const std::string head = fmt::format("{}\n{}\n{}\n", border, title, rule);
  const std::string told = fmt::format("{}\n{}{}\n", painted(heading, style.colour),
                                       painted(cause, style.colour), details);
  // An event comes first, and its consequences below. torchrun prints the root cause last.
  if (event != nullptr) return head + told + others + border;
  return fmt::format("{}Failures:\n{}{}\n{}{}", head, others, rule, told, border);
}

}  // namespace lockstep::agent
