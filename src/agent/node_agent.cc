#include "agent/node_agent.h"

#include "agent/job.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "host/identity.h"
#include "host/port_owner.h"
#include "io/open_files.h"
#include "launch/backend_choice.h"
#include "proc/leftovers.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace lockstep::agent {
namespace {

// The least that a job without log files or other nodes gets by with; measured.
constexpr std::size_t kOwnFiles = 18;
constexpr std::size_t kFilesOfAWorker = 2;

proc::Rung rung_of(launch::Isolation isolation) {
  switch (isolation) {
    case launch::Isolation::pidns:
      return proc::Rung::pidns;
    case launch::Isolation::cgroup:
      return proc::Rung::cgroup;
    case launch::Isolation::none:
      return proc::Rung::none;
    case launch::Isolation::guardian:
    case launch::Isolation::automatic:
      break;
  }
  // A cgroup shows in /proc/self/cgroup and moves where a program looks for its memory limit; a PID
  // namespace shows everywhere. The guardian is the strongest rung that a worker can't notice.
  return proc::Rung::guardian;
}

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

// Before anything is started, and without creating the file.
Status check_writable(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const bool exists = access(path.c_str(), F_OK) == 0;
  if (access(exists ? path.c_str() : folder.c_str(), W_OK) != 0)
    return fail_sys("--report " + path, errno);
  struct stat found {};
  if (exists && stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode))
    return fail_sys("--report " + path, EISDIR);
  return {};
}

}  // namespace

Result<int> run_job(const launch::LaunchConfig& config) {
  LOCKSTEP_TRY(
      io::check_open_files(kOwnFiles + kFilesOfAWorker * static_cast<std::size_t>(config.nproc)));
  LOCKSTEP_TRY_ASSIGN(proc::Containment containment,
                      proc::Containment::set_up(rung_of(config.isolation)));
  log::debug("isolation: {}", proc::rung_name(containment.rung()));
  NodeAgent agent(config, std::move(containment));
  return agent.run();
}

NodeAgent::NodeAgent(const launch::LaunchConfig& config, proc::Containment containment)
    : config_(config),
      environment_(environment_of(environ)),
      host_name_(host::hostname()),
      node_name_(host::node_name()),
      console_(loop_),
      containment_(std::move(containment)),
      group_(config.nproc, config.max_restarts, config.min_nodes < config.max_nodes),
      grace_(loop_),
      stopping_timer_(loop_),
      doubt_(loop_),
      backoff_(config.restart_backoff),
      pause_(loop_),
      capture_rules_(capture_rules_of(config.logs)),
      oom_(OomCounter::find("")),
      waiting_timer_(loop_),
      barrier_timer_(loop_),
      conclusion_({.shutdown = config.shutdown_timeout, .leave = config.leave_timeout}),
      stage_timer_(loop_),
      stage_poll_(loop_),
      sweep_(loop_, containment_) {
  environment_.erase("LOCKSTEP_RDZV_TOKEN");  // the agents' own
}

Result<int> NodeAgent::run() {
  const Status ready = prepare();
  if (!ready) {
    containment_.end();
    console_.drain(io::Clock::now() + std::chrono::seconds(1));
    return Failure(ready.error());
  }
  signals_->poll();  // a signal that came before now ends the job before anything is started
  if (group_.state() == State::waiting) apply(group_.on({EventKind::begin}));
  loop_.run();  // until the end of the job stops it
  if (rendezvous_error_ && attempts_ == 0) return Failure(*rendezvous_error_);
  return exit_code_;
}

Status NodeAgent::prepare() {
  console_.take_log();
  if (config_.report_file) LOCKSTEP_TRY(check_writable(*config_.report_file));
  open_files_ = io::raise_open_files_limit();  // thousands of store connections
  LOCKSTEP_TRY_ASSIGN(signals_,
                      SignalSource::open(loop_, [this](int signal) { on_signal(signal); }));
  if (const proc::Guardian* guardian = containment_.guardian()) {
    guardian_watch_ = std::make_unique<io::Watch>(loop_, guardian->pidfd.get());
    guardian_watch_->start(io::kReadable, [this](int) { on_guardian_gone(); });
  }
  LOCKSTEP_TRY_ASSIGN(cpu_binding_, plan_cpu_binding(config_.numa_binding, config_.nproc));
  sweep_earlier_run();
  rendezvous::NodeOffer offer;
  offer.role = config_.role;
  offer.local_world_size = config_.nproc;
  offer.host = node_name_;
  if (config_.node_rank_given) offer.node_rank = config_.node_rank;
  offer.max_restarts = config_.max_restarts;
  offer.replacement = config_.replacement;
  offer.launched = {.name = rendezvous::launched_name(config_.entrypoint),
                    .arguments = config_.entrypoint_arguments,
                    .any = config_.conf.text("entrypoint") == "any",
                    .version = LOCKSTEP_VERSION};
  rendezvous_ = launch::make_backend(loop_, config_, std::move(offer),
                                     [this](const std::string& addr) { return offer_store(addr); });
  rendezvous_->on_interruption(
      [this](const rendezvous::Interruption& what) { on_interruption(what); });
  LOCKSTEP_TRY(open_watchdogs());
  open_health_port();
  return {};
}

void NodeAgent::sweep_earlier_run() const {
  if (config_.job_name.empty() || containment_.rung() == proc::Rung::none) return;
  const auto killed = proc::kill_leftovers(config_.job_name);
  if (!killed.empty())
    log::warning("ended {} processes that an earlier run of job '{}' had left on this node",
                 killed.size(), printable(config_.job_name));
}

Status NodeAgent::open_logs() {
  if (config_.logs.disabled) return {};
  LOCKSTEP_TRY_ASSIGN(run_dir_, logs::create_run_dir(config_.logs.base_dir, config_.run_id));
  log::info("log directory: {}", run_dir_->path());
  return {};
}

Status NodeAgent::open_watchdogs() {
  const auto enabled = environment_.find("TORCHELASTIC_ENABLE_FILE_TIMER");
  if (enabled != environment_.end() && enabled->second == "1") {
    const auto given = environment_.find("TORCHELASTIC_TIMER_FILE");
    const std::string path = given != environment_.end() && !given->second.empty()
                                 ? given->second
                                 : "/tmp/watchdog_timer_" + random_uuid4();
    LOCKSTEP_TRY_ASSIGN(
        file_timer_,
        FileTimer::open(
            loop_, path,
            [this](const FileTimerTable::Expired& expired) {
              const auto pid = containment_.find_descendant(expired.pid);
              if (!pid)
                return;  // not one of ours: whoever wrote that can't make us kill a stranger
              why_stopped_ = fmt::format("the timer '{}' of process {} on {} expired",
                                         printable(expired.scope_id), expired.pid, node_name_);
              log::error("{}; sending {} to it and ending the job", why_stopped_,
                         proc::signal_name(expired.signal));
              history_.attempt_ends(AttemptEnd::watchdog, why_stopped_);
              timed_out_ = *pid;
              kill(*pid, expired.signal);
              apply(group_.on({EventKind::unhealthy}));
            },
            [this](pid_t pid) { return containment_.find_descendant(pid).has_value(); }));
    environment_["TORCHELASTIC_TIMER_FILE"] = path;
  }
  const auto limit = environment_.find("TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT");
  const auto seconds = limit == environment_.end() ? std::nullopt : parse_float(limit->second);
  if (!seconds || *seconds <= 0) return {};
  stuck_watch_ = std::make_unique<StuckWatch>(
      loop_, std::chrono::duration_cast<io::Duration>(std::chrono::duration<double>(*seconds)),
      [this] {
        std::vector<pid_t> pids;
        for (const Worker& worker : workers_)
          if (worker.child && worker.child->alive()) pids.push_back(worker.child->pid());
        return pids;
      },
      [this](pid_t pid) {
        if (group_.state() != State::running) return;
        why_stopped_ = fmt::format(
            "process {} on {} has been stuck in the kernel for longer than {} s: it is {}", pid,
            node_name_, environment_["TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT"],
            what_holds("/proc", pid));
        log::error("{}; ending the job", why_stopped_);
        history_.attempt_ends(AttemptEnd::watchdog, why_stopped_);
        apply(group_.on({EventKind::unhealthy}));
      });
  return {};
}

void NodeAgent::open_health_port() {
  const auto given = environment_.find("TORCHELASTIC_HEALTH_CHECK_PORT");
  if (given == environment_.end() || strip(given->second).empty()) return;
  const auto port = parse_int(given->second);
  if (!port || *port < 0 || *port > 65535) {
    log::warning("TORCHELASTIC_HEALTH_CHECK_PORT={} is no port; no health check is served",
                 printable(given->second));
    return;
  }
  http::Handlers handlers;
  handlers["/health"] = [this](const http::Request&) { return health(); };
  handlers["/metrics"] = [this](const http::Request&) {
    return http::Response{200, std::string(status::kMetricsContentType),
                          status::metrics_text(metrics())};
  };
  // Every interface: whoever set the port wants it probed from outside (a kubelet).
  auto server =
      http::Server::listen(loop_, "", static_cast<std::uint16_t>(*port), std::move(handlers));
  if (!server) {
    // The job does not depend on being watched.
    Error error = std::move(server).error();
    host::name_port_holder(error, static_cast<int>(*port));
    log::warning("no health check is served: {}", error.message);
    return;
  }
  health_server_ = std::move(*server);
}

}  // namespace lockstep::agent
