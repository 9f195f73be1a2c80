// Turns the log options into a directory and a capture plan for each worker.
#include "agent/job_logs.h"

#include "base/log.h"
#include "codec/python_template.h"
#include "logs/line_prefix.h"

#include <fmt/core.h>

#include <unistd.h>

#include <utility>

namespace lockstep::agent {
namespace {

logs::CaptureRules capture_rules_of(const launch::LogConfig& config) {
  logs::CaptureRules rules;
  rules.redirects = config.redirects;
  rules.tee = config.tee;
  rules.max_log_size = config.max_size;
  rules.duplicate_stdout_filters = config.duplicate_stdout_filters;
  rules.duplicate_stderr_filters = config.duplicate_stderr_filters;
  if (config.filter)
    rules.shown =
        logs::CaptureRules::Shown{config.filter->local_ranks, config.filter->global_ranks};
  return rules;
}

// Expands the prefix template for one rank, or for several ("0-3").
std::string prefix_of(const Node& node, std::string_view local_ranks, std::string_view ranks) {
  return codec::substitute(node.config.logs.prefix_template,
                           {{"role_name", node.config.role},
                            {"local_rank", std::string(local_ranks)},
                            {"rank", std::string(ranks)},
                            {"hostname", node.host_name},
                            {"time", std::string(1, logs::LinePrefix::kTime)}});
}

}  // namespace

JobLogs::JobLogs(const Node& node) : node_(node), rules_(capture_rules_of(node.config.logs)) {
  using Fold = launch::LogConfig::Fold;
  rules_.tag_all = node.config.logs.fold == Fold::always && node.config.nproc > 1;
}

Status JobLogs::open() {
  const launch::LaunchConfig& config = node_.config;
  if (config.logs.disabled) return {};
  // Without redirects and --log-dir nothing is kept: a directory for error files is enough.
  LOCKSTEP_TRY_ASSIGN(run_dir_, config.logs.base_dir || rules_.keeps_logs()
                                    ? logs::create_run_dir(config.logs.base_dir, config.run_id)
                                    : logs::create_error_dir());
  log::info("log directory: {}", run_dir_->path());
  return {};
}

Status JobLogs::open_attempt(int restarts) {
  close_recorder();
  attempt_dir_.reset();
  if (!run_dir_) return {};
  LOCKSTEP_TRY_ASSIGN(attempt_dir_, run_dir_->create_attempt(restarts, node_.config.nproc));
  open_recorder();
  return {};
}

// The job runs without, as it does where the file system has no pipes.
void JobLogs::open_recorder() {
  if (node_.config.recorder.variables.empty()) return;
  auto made = RecorderFolder::make(attempt_dir_->path);
  if (!made) return log::debug("flight recorders are not asked: {}", made.error().message);
  recorder_ = *std::move(made);
  if (!node_.config.recorder.aid) return;
  if (const Status added = recorder_->add_aid(); !added)
    log::warning("--aid has no effect: {}", added.error().message);
}

void JobLogs::close_recorder() {
  if (recorder_ && recorder_->remove())
    log::warning("PyTorch has dumped flight recorders to {}", recorder_->path());
  recorder_.reset();
}

Result<logs::FilteredFiles> JobLogs::open_filtered() const {
  if (!attempt_dir_) return logs::FilteredFiles{};
  return logs::open_filtered_files(rules_, *attempt_dir_);
}

logs::CapturePlan JobLogs::plan(const WorkerSpec& spec, const logs::FilteredFiles& filtered) const {
  return logs::plan_capture(
      rules_, attempt_dir_ ? &*attempt_dir_ : nullptr, filtered, spec.local_rank, spec.rank,
      prefix_of(node_, std::to_string(spec.local_rank), std::to_string(spec.rank)));
}

void JobLogs::start_folding(logs::Console& console) const {
  using Fold = launch::LogConfig::Fold;
  const Fold fold = node_.config.logs.fold;
  // With a single worker there are no equal lines to fold.
  if (fold == Fold::never || node_.config.nproc == 1) return;
  // A folded line must name its ranks. If the template has no rank, put the ranks in front.
  const bool names_rank = prefix_of(node_, "0", "0") != prefix_of(node_, "1", "1");
  for (const logs::Stream stream : {logs::Stream::out, logs::Stream::err}) {
    // A log collector that reads a pipe wants every line, so "auto" folds on terminals only.
    if (fold == Fold::automatic && isatty(console.fd(stream)) != 1) continue;
    console.start_folding(
        stream, [&node = node_, names_rank](std::string_view local_ranks, std::string_view ranks) {
          const bool one = ranks.find_first_of("-,") == ranks.npos;
          const std::string own = prefix_of(node, local_ranks, ranks);
          return names_rank || one ? own : fmt::format("[{}] {}", ranks, own);
        });
  }
}

std::string JobLogs::error_file(int local_rank) const {
  return attempt_dir_ ? attempt_dir_->error_file(local_rank) : "";
}

std::string JobLogs::attempt_dir() const {
  return attempt_dir_ ? attempt_dir_->path : "";
}

// If no worker ever ran, the input was bad, and bad input leaves no directory behind. A job that
// wrote no file leaves none either if Lockstep chose the place. A directory given by --log-dir
// stays.
void JobLogs::remove_unused(bool ran) {
  close_recorder();
  if (!run_dir_) return;
  if (!ran) return run_dir_->remove_unused();
  if (!node_.config.logs.base_dir) run_dir_->remove_empty();
}

}  // namespace lockstep::agent
