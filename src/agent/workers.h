// The worker processes of this node, attempt after attempt. Starts them, reads their output, stops
// and kills them, sees how each one ended, and ends the processes they leave behind. Decides
// nothing: events go to the listener.
#pragma once

#include "agent/failure_report.h"
#include "agent/job_logs.h"
#include "agent/leftover_sweep.h"
#include "agent/node.h"
#include "agent/oom.h"
#include "agent/sight.h"
#include "agent/worker.h"
#include "base/error.h"
#include "io/loop.h"
#include "logs/console.h"
#include "proc/containment.h"
#include "rendezvous/round.h"

#include <sys/resource.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::agent {

class Workers {
 public:
  class Listener {
   public:
    virtual void on_worker_started(const Worker& worker) = 0;
    // failure: nullptr if the worker exited with 0.
    virtual void on_worker_ended(const Worker& worker, const WorkerFailure* failure) = 0;
    // The armed grace period or kill limit is over.
    virtual void on_grace_over() = 0;

   protected:
    ~Listener() = default;
  };

  Workers(io::Loop& loop, logs::Console& console, const proc::Containment& containment,
          const Node& node, Listener& listener);

  // Call first. Plans the CPUs of each worker and raises this process's limit of descriptors.
  Status prepare();

  // Forgets the previous attempt and makes the log directory of the new one.
  Status open_attempt(const Round& round);
  // Starts all workers of the round. On failure some workers may run: see living().
  Status start(const Round& round);

  // Stops the workers. A worker that fails after the first call of stop() or kill() is a
  // consequence of that call.
  void stop(int signal);
  void kill();
  // Calls on_grace_over() after the shutdown timeout. Until then the log names slow workers.
  void arm_grace();
  // Switches from the shutdown timeout to the stop timeout, also for workers that are already being
  // stopped: another node may have passed on the same request before this node got its own.
  void be_patient();
  // Calls on_grace_over() after the time that the kernel may need to end a killed process.
  void arm_kill_limit();
  void disarm();
  // Sends the signal to a process (worker or descendant) after its timer expired. A worker's end
  // then counts as a genuine failure.
  void kill_timed_out(pid_t pid, int signal);

  void forward(int signal) const;
  void resize_terminals() const;
  void reap_orphans() const;

  // Processes that workers left behind. Call after all workers have ended.
  std::vector<pid_t> leftovers() const { return containment_.leftovers(); }
  // Ends the leftovers. Calls back when none is left, or after the limit.
  void sweep_leftovers(io::Duration limit, std::function<void()> then);
  void cancel_sweep() { sweep_.cancel(); }

  // For the end of the job.
  void name_the_abandoned() const;  // logs the workers that survived SIGKILL
  void close_output();

  std::vector<pid_t> living() const;
  // All workers of the current attempt, for those who look at them.
  std::vector<Sight::Target> targets() const;
  // What all workers of the current attempt were started with. Valid until the next attempt.
  std::vector<const WorkerSpec*> specs() const;
  bool has_run() const;  // a worker of the current attempt was started
  // Says where the ranks were at the last failure (WorkerFailure::others).
  void tell_others(std::vector<std::string> sentences) {
    if (!failures_.empty()) failures_.back().others = std::move(sentences);
  }
  // Adds lines to the report of the last failure.
  void add_notes(const std::vector<std::string>& lines);
  // Failures of the current attempt.
  const std::vector<WorkerFailure>& failures() const { return failures_; }
  std::optional<std::int64_t> stop_sent_ms() const { return stop_sent_ms_; }
  // Number of failures in all attempts, without consequences of a stop.
  std::int64_t failures_total() const { return failures_total_; }
  JobLogs& logs() { return logs_; }
  const JobLogs& logs() const { return logs_; }

 private:
  Status start_worker(Worker& worker, const std::string& executable,
                      const logs::FilteredFiles& filtered);
  void on_end(Worker& worker);
  WorkerFailure failure_of(const Worker& worker, const proc::Exit& end) const;
  void note_stop();
  void name_slow_ones(io::Duration pause);

  io::Loop& loop_;
  logs::Console& console_;
  const proc::Containment& containment_;
  const Node& node_;
  Listener& listener_;
  JobLogs logs_;
  LeftoverSweep sweep_;
  rlimit open_files_{};  // the original limit of this process, which workers get
  std::vector<std::vector<int>> cpu_binding_;  // by local rank
  std::optional<OomCounter> oom_;              // set at the first attempt
  std::optional<std::uint64_t> oom_before_;
  std::vector<Worker> workers_;
  std::vector<WorkerFailure> failures_;
  std::int64_t failures_total_ = 0;
  std::optional<std::int64_t> stop_sent_ms_;
  std::optional<pid_t> timed_out_;
  io::Timer grace_;
  io::TimePoint grace_end_;
  bool patient_ = false;
  io::Timer naming_;
};

}  // namespace lockstep::agent
