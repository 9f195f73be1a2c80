// The driver behind run_job(): owns the loop and everything on it, feeds events into the
// WorkerGroup table and carries out its actions.
#pragma once

#include "agent/clock_ms.h"
#include "agent/conclusion.h"
#include "agent/cpu_binding.h"
#include "agent/failure_report.h"
#include "agent/job_end.h"
#include "agent/job_history.h"
#include "agent/leftover_sweep.h"
#include "agent/oom.h"
#include "agent/restart_backoff.h"
#include "agent/signal_source.h"
#include "agent/watchdog.h"
#include "agent/worker_group.h"
#include "agent/worker_spec.h"
#include "http/server.h"
#include "io/loop.h"
#include "launch/launch_config.h"
#include "logs/capture.h"
#include "logs/capture_plan.h"
#include "logs/console.h"
#include "logs/line_prefix.h"
#include "logs/log_dir.h"
#include "proc/containment.h"
#include "proc/spawn.h"
#include "rendezvous/backend.h"
#include "status/events.h"
#include "status/metrics.h"
#include "store/server.h"

#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::agent {

class NodeAgent {
 public:
  NodeAgent(const launch::LaunchConfig& config, proc::Containment containment);

  Result<int> run();

 private:
  struct Worker {
    WorkerSpec spec;
    std::string error_file;
    std::string stdout_log;  // empty: no such file
    std::string stderr_log;
    std::unique_ptr<logs::Capture> capture;
    std::optional<proc::Child> child;
    std::unique_ptr<io::Watch> end_watch;
  };

  // Setting up (node_agent.cc)
  Status prepare();
  void sweep_earlier_run() const;
  Status open_logs();
  Status open_watchdogs();
  void open_health_port();

  // The other nodes (meeting.cc)
  void join();
  void join_round();
  void joined(Result<std::optional<rendezvous::Round>> outcome);
  void no_rendezvous(Error error);
  Result<rendezvous::StorePlace> offer_store(const std::string& addr);
  void on_interruption(const rendezvous::Interruption& interruption);
  void tell_failure(bool final);
  void enter_barrier();
  void explain_waiting();
  void explain_staying(io::Duration pause);
  void explain_again(io::Duration pause);
  void exchange_reports(io::Duration limit);
  void leave_rendezvous();

  // Attempts (attempt.cc)
  void apply(const std::vector<Action>& actions);
  void apply(const Action& action);
  void start_attempt();
  void announce_restart() const;
  bool hold_restart();
  std::string why_again() const;
  Status start_workers();
  Status start_worker(Worker& worker, const std::string& executable);
  Result<std::vector<std::string>> open_attempt_dir();
  logs::CapturePlan capture_plan(const WorkerSpec& spec, const logs::FilteredFiles& filtered) const;
  void stop_workers(int signal);
  void kill_workers();
  void explain_stopping(io::Duration pause);
  void on_worker_end(Worker& worker);
  void on_failure(const Worker& worker, const proc::Exit& end);
  void on_signal(int signal);
  void on_guardian_gone();
  void reap_orphans() const;

  // The end (end_of_job.cc)
  void begin_conclusion();
  void conclude(Conclusion::Event event);
  void conclude_soon(Conclusion::Event event);
  void stop_waiting_in_stage();
  void carry_out(const Conclusion::Actions& actions);
  void carry_out(const Conclusion::Action& action);
  JobEnd job_end() const;
  void tell_outcome();
  void close();
  void name_the_unkillable() const;
  void remove_unused_logs() const;

  // Views (node_status.cc)
  void emit(const std::string& state, const Worker* worker, std::optional<double> duration_ms = {});
  status::Metrics metrics() const;
  http::Response health() const;

  const launch::LaunchConfig& config_;
  Environment environment_;
  std::string host_name_;
  std::string node_name_;
  rlimit open_files_{};
  std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  JobHistory history_{unix_ms()};

  io::Loop loop_;
  logs::Console console_;
  proc::Containment containment_;
  WorkerGroup group_;
  std::unique_ptr<SignalSource> signals_;
  std::unique_ptr<io::Watch> guardian_watch_;
  io::Timer grace_;
  io::TimePoint grace_end_;
  io::Timer stopping_timer_;
  io::Timer doubt_;
  RestartBackoff backoff_;
  RestartBackoff::Duration pause_length_{};
  io::Timer pause_;
  std::unique_ptr<store::Server> store_;  // of this node's rounds as rank 0
  std::unique_ptr<rendezvous::Backend> rendezvous_;
  bool rendezvous_open_ = false;
  std::unique_ptr<http::Server> health_server_;
  std::unique_ptr<FileTimer> file_timer_;
  std::unique_ptr<StuckWatch> stuck_watch_;
  std::optional<logs::RunDir> run_dir_;
  logs::CaptureRules capture_rules_;
  OomCounter oom_;
  std::vector<std::vector<int>> cpu_binding_;  // by local rank

  Round round_;
  std::vector<std::string> said_;  // notes of the last round
  bool counted_ = false;           // as a restart: this round and not only a node that came or went
  int attempts_ = 0;               // rounds in which workers were started here
  std::string why_stopped_;        // what ended the round, other than a worker's failure here
  io::Timer waiting_timer_;
  io::Timer barrier_timer_;
  io::TimePoint waiting_since_;
  std::string explained_;
  std::vector<rendezvous::NodeReport> reports_;  // of all nodes
  std::optional<Error> rendezvous_error_;
  std::optional<logs::AttemptDir> attempt_dir_;
  std::vector<Worker> workers_;
  std::vector<WorkerFailure> failures_;
  std::optional<std::int64_t> stop_sent_ms_;
  std::optional<pid_t> timed_out_;  // killed because its timer expired: a failure of its own
  std::optional<std::uint64_t> oom_before_;
  std::optional<Error> start_error_;
  StopRequests stop_requests_;
  int unlisted_signal_ = 0;  // the job was ended by one that the user left to its default action
  std::int64_t failures_total_ = 0;

  Conclusion conclusion_;
  io::Timer stage_timer_;
  io::Timer stage_poll_;
  LeftoverSweep sweep_;
  std::vector<pid_t> left_behind_;
  int exit_code_ = 1;
};

}  // namespace lockstep::agent
