// Applies the options about restarts, signals, timeouts and reports.
#include "base/text.h"
#include "launch/rules.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>

namespace lockstep::launch {
namespace {

constexpr std::string_view kDefaultSignals = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";

bool contains(const std::vector<int>& numbers, int number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

// An unknown signal is a warning, as with torchrun.
void apply_signals(const RawOptions& raw, LaunchConfig& config) {
  config.signals_given = raw.signals_to_handle.has_value();
  const std::string list = raw.signals_to_handle.value_or(std::string(kDefaultSignals));
  config.signals_text = list;
  for (const std::string& name : split(list, ',')) {
    const auto number = proc::signal_number(name);
    if (!number || *number == SIGKILL || *number == SIGSTOP) {  // processes cannot handle these two
      config.warnings.push_back(
          fmt::format("Failed to register signal handler for {}", printable(name)));
    } else if (!contains(config.signals, *number)) {
      config.signals.push_back(*number);
    }
  }
  // Workers get these, and the job goes on. Schedulers announce time limits with them.
  for (const int number : {SIGUSR1, SIGUSR2}) {
    if (!contains(config.signals, number)) config.forwarded_signals.push_back(number);
  }
}

// The option wins over the variable.
Status apply_shutdown_timeout(const RawOptions& raw, const Facts& facts, LaunchConfig& config) {
  std::int64_t seconds = raw.shutdown_timeout.value_or(30);
  const auto env = facts.env("TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
  if (!raw.shutdown_timeout && env) {
    const auto number = parse_int(*env);
    if (!number)
      return fail(
          Errc::invalid_input,
          fmt::format("TORCH_ELASTIC_SHUTDOWN_TIMEOUT: invalid literal for int() with base 10: "
                      "'{}'",
                      printable(*env)));
    seconds = *number;
  }
  if (seconds < 0)
    return fail(Errc::invalid_input,
                fmt::format("shutdown_timeout must be non-negative, got {}", seconds));
  config.shutdown_timeout = std::chrono::seconds(std::min(seconds, kYearInSeconds));
  config.stop_timeout = config.shutdown_timeout;
  // Set in a job that Slurm warns before its time limit, early enough for ranks to save their
  // state.
  if (const auto given = parse_int(facts.env("LOCKSTEP_STOP_TIMEOUT").value_or("")))
    config.stop_timeout =
        std::max(config.stop_timeout, std::chrono::seconds(std::min(*given, kYearInSeconds)));
  return {};
}

Status apply_event_handler(const std::string& name, LaunchConfig& config) {
  if (name == "console") {
    config.event_handler = EventHandler::console;
  } else if (name != "null" && name != "dynamic_rendezvous") {  // torchrun's second name for null
    return fail(Errc::invalid_input,
                fmt::format("--event-log-handler {} is not known", printable(name)),
                "known handlers: null, console");
  }
  return {};
}

Result<Isolation> isolation(const std::string& text) {
  if (text == "auto") return Isolation::automatic;
  if (text == "pidns") return Isolation::pidns;
  if (text == "cgroup") return Isolation::cgroup;
  if (text == "guardian") return Isolation::guardian;
  if (text == "none") return Isolation::none;
  return fail(Errc::invalid_input,
              fmt::format("--isolation must be one of auto, pidns, cgroup, guardian, none, got {}",
                          printable(text)));
}

Result<ExitCodeMode> exit_code(const std::string& text) {
  if (text == "torchrun") return ExitCodeMode::torchrun;
  if (text == "worker") return ExitCodeMode::worker;
  return fail(Errc::invalid_input,
              fmt::format("--exit-code must be one of torchrun, worker, got {}", printable(text)));
}

Result<ReportTails> report_tails(const std::string& text) {
  if (text == "first") return ReportTails::first;
  if (text == "all") return ReportTails::all;
  if (text == "none") return ReportTails::none;
  return fail(
      Errc::invalid_input,
      fmt::format("--report-tails must be one of first, all, none, got {}", printable(text)));
}

}  // namespace

Status apply_supervision(const RawOptions& raw, const Facts& facts, LaunchConfig& config) {
  // Agents count restarts in 32 bits.
  constexpr std::int64_t kMostRestarts = std::numeric_limits<int>::max();
  if (raw.max_restarts < 0 || raw.max_restarts > kMostRestarts)
    return fail(Errc::invalid_input,
                fmt::format("max_restarts must be >= 0{}, got {}",
                            raw.max_restarts < 0 ? "" : " and fit 32 bits", raw.max_restarts));
  config.max_restarts = static_cast<int>(raw.max_restarts);
  constexpr double kLongestPause = 86400;  // a day; more is likely a slip
  if (!(raw.restart_backoff >= 0 && raw.restart_backoff <= kLongestPause))
    return fail(Errc::invalid_input,
                fmt::format("--restart-backoff must be between 0 and {} seconds, got {}",
                            kLongestPause, raw.restart_backoff),
                "0 restarts at once, always");
  config.restart_backoff = std::chrono::round<std::chrono::milliseconds>(
      std::chrono::duration<double>(raw.restart_backoff));
  config.replacement = !raw.no_replacement;
  // torchrun fails with an assertion for nan, and with an overflow for inf once its workers run.
  if (!(raw.monitor_interval > 0) || std::isinf(raw.monitor_interval))
    return fail(Errc::invalid_input,
                fmt::format("monitor_interval must be > 0{}, got {}",
                            std::isfinite(raw.monitor_interval) ? "" : " and finite",
                            raw.monitor_interval));
  config.monitor_interval = std::chrono::duration<double>(raw.monitor_interval);
  apply_signals(raw, config);
  LOCKSTEP_TRY(apply_shutdown_timeout(raw, facts, config));
  LOCKSTEP_TRY(apply_event_handler(raw.event_log_handler, config));
  LOCKSTEP_TRY_ASSIGN(config.isolation, isolation(raw.isolation));
  LOCKSTEP_TRY_ASSIGN(config.exit_code, exit_code(raw.exit_code));
  if (raw.report && raw.report->empty())
    return fail(Errc::invalid_input, "--report needs a file name");
  config.report_file = raw.report;
  LOCKSTEP_TRY_ASSIGN(config.report_tails, report_tails(raw.report_tails));
  return {};
}

}  // namespace lockstep::launch
