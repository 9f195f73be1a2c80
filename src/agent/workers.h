// The worker processes of this node, attempt after attempt: starts them, takes in their output,
// stops and kills them, sees how each one ended, and ends what they leave behind. Decides nothing:
// what happens goes to its listener.
#pragma once

#include "agent/failure_report.h"
#include "agent/job_logs.h"
#include "agent/leftover_sweep.h"
#include "agent/node.h"
#include "agent/oom.h"
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
    // failure: nullptr where it ended well.
    virtual void on_worker_ended(const Worker& worker, const WorkerFailure* failure) = 0;
    virtual void on_grace_over() = 0;

   protected:
    ~Listener() = default;
  };

  Workers(io::Loop& loop, logs::Console& console, const proc::Containment& containment,
          const Node& node, Listener& listener);

  // Before all else: CPUs for each worker, and descriptors enough for this process.
  Status prepare();

  // Starting: forgets the attempt before, makes the directory of the new one, starts all workers.
  Status open_attempt(const Round& round);
  Status start(const Round& round);

  // Stopping. A worker that fails after the first of these calls is a consequence of it.
  void stop(int signal);
  void kill();
  // on_grace_over() after the shutdown timeout; workers that take their time are named meanwhile.
  void arm_grace();
  // From now on on_grace_over() comes after the stop timeout, also where workers are being stopped
  // already: another node that was told the same may have been quicker.
  void be_patient();
  // on_grace_over() after the time that the kernel may take to end a killed process.
  void arm_kill_limit();
  void disarm();
  // A worker, or a process that it started, let its timer expire. Its end is a failure of its own.
  void kill_timed_out(pid_t pid, int signal);

  void forward(int signal) const;
  void resize_terminals() const;
  void reap_orphans() const;

  // What workers left behind, when all of them have ended.
  std::vector<pid_t> leftovers() const { return containment_.leftovers(); }
  // Calls back when nothing is left, or after the limit.
  void sweep_leftovers(io::Duration limit, std::function<void()> then);
  void cancel_sweep() { sweep_.cancel(); }

  // At the end of the job.
  void name_the_abandoned() const;  // workers that not even SIGKILL has ended
  void close_output();

  std::vector<pid_t> living() const;
  bool has_run() const;  // a worker of the attempt under way was started
  const std::vector<WorkerFailure>& failures() const { return failures_; }  // of this attempt
  std::optional<std::int64_t> stop_sent_ms() const { return stop_sent_ms_; }
  std::int64_t failures_total() const { return failures_total_; }  // of all attempts, genuine ones
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
  rlimit open_files_{};                        // that workers get: as this process found it
  std::vector<std::vector<int>> cpu_binding_;  // by local rank
  std::optional<OomCounter> oom_;              // from the first attempt on
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
