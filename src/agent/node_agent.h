// The agent behind run_job(): wires the owners of a job's parts on one loop and routes events
// between them. The WorkerGroup table decides what happens next.
#pragma once

#include "agent/chronicle.h"
#include "agent/end_of_job.h"
#include "agent/gpu_sight.h"
#include "agent/job_end.h"
#include "agent/job_history.h"
#include "agent/job_view.h"
#include "agent/membership.h"
#include "agent/node.h"
#include "agent/profile_port.h"
#include "agent/restart_pause.h"
#include "agent/sight.h"
#include "agent/signal_router.h"
#include "agent/status_page.h"
#include "agent/watchdogs.h"
#include "agent/worker_group.h"
#include "agent/workers.h"
#include "http/server.h"
#include "io/loop.h"
#include "launch/launch_config.h"
#include "logs/console.h"
#include "proc/containment.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::agent {

class NodeAgent final : private Membership::Listener,
                        private Workers::Listener,
                        private Watchdogs::Listener,
                        private SignalRouter::Listener,
                        private Sight::Listener {
 public:
  NodeAgent(const launch::LaunchConfig& config, proc::Containment containment);

  // Runs the job. Returns the exit code. An Error means that no worker was started.
  Result<int> run();
  // Returns whether run() has written the --report file, as far as one is wanted.
  bool has_reported() const { return is_over(); }

 private:
  Status prepare();
  void sweep_earlier_run() const;

  // Actions of the table
  void feed(Event event);
  void carry_out(const Action& action);
  void join();
  void start_attempt();
  Status start_workers();
  void tell_failure(bool final);
  void judge_host();
  void attempt_ends();
  void read_places(std::optional<int> failed);
  void finish();

  // Events
  void on_joined(const Round& round, bool counted) override;
  void on_join_failed(Error error) override;
  void on_spare_over() override;
  void on_interruption(rendezvous::Interruption::Kind kind, const std::string& why) override;
  void on_news(int from, const std::string& text) override { sight_.on_news(from, text); }
  void on_barrier_over() override;
  void on_worker_started(const Worker& worker) override;
  void on_worker_ended(const Worker& worker, const WorkerFailure* failure) override;
  void on_grace_over() override;
  void on_timer_expired(pid_t pid, int signal, const std::string& why) override;
  void on_stuck_worker(const std::string& why) override;
  void on_hang(const std::string& why) override;
  void on_look(const looks::Fold& fold, const looks::Verdict& verdict,
               const looks::Redo& redo) override;
  void on_straggler(const looks::WorldSlow& slow) override { chronicle_.straggler(slow); }
  void on_straggler_over(int rank, const std::string& words) override {
    chronicle_.straggler_over(rank, words);
  }
  std::string goodput() const override { return status::goodput_words(chronicle_.goodput()); }
  void on_stop(int signal, bool listed) override;
  void on_urgent(int signal) override;
  void on_guardian_gone() override;

  JobView view() const;
  void emit(const status::Event& event);
  bool is_over() const { return group_.state() == State::finished; }

  Node node_;
  JobHistory history_;
  JobEnd reasons_;  // the reasons known so far why the round or the job ended
  io::Loop loop_;
  logs::Console console_;
  proc::Containment containment_;
  WorkerGroup group_;
  Membership membership_;
  Workers workers_;
  RestartPause restart_pause_;
  io::Timer doubt_;
  SignalRouter signals_;
  Watchdogs watchdogs_;
  GpuSight gpus_;
  Sight sight_;
  ProfilePort profiles_;
  Chronicle chronicle_;
  StatusPage status_page_;
  std::unique_ptr<http::Server> health_port_;
  EndOfJob end_;
};

}  // namespace lockstep::agent
