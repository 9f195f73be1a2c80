// A run of a job, as handled by the process in charge: the batch step, or its deputy on another
// node. Judges how the run ended, records the end, and has the job queued again where a new run can
// help. Functions that wait run the loop themselves, so call them while the loop is not running.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "proc/spawn.h"
#include "slurm/job_folder.h"
#include "slurm/verdict.h"

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::slurm {

class JobRun {
 public:
  JobRun(io::Loop& loop, std::string folder);

  const JobFolder& folder() const { return folder_; }
  BatchState& state() { return state_; }
  const BatchState& state() const { return state_; }
  Status keep() const { return folder_.keep(state_); }

  // Sets what conclude() calls after its last line of the log and before it records the end.
  // Followers of the job read its output no further once the end is recorded.
  void before_end(std::function<void()> call) { before_end_ = std::move(call); }

  // Returns the nodes that the pre-flight found bad; empty before conclude().
  const std::vector<std::string>& unfit() const { return unfit_; }

  // Returns the reports of the agents that have ended.
  std::vector<NodeReport> reports() const;
  // Judges the run, records the end, and returns the job's exit code. may_be_preempted: if the job
  // was stopped, ask Slurm whether it will queue the job again itself. Errors: the state file
  // cannot be written.
  Result<int> conclude(const BatchFacts& facts, bool may_be_preempted);
  Result<int> conclude(Verdict verdict, bool may_be_preempted);

  // Starts a program of PATH, in this process's environment unless another one is given.
  Result<proc::Child> start(const std::vector<std::string>& argv) const;
  Result<proc::Child> start(const std::vector<std::string>& argv,
                            std::vector<std::string> environment) const;
  // These three run the loop until the child has ended or the time is over. call_tool() returns the
  // exit code as a shell has it, and 1 if the program cannot be started.
  void wait_for(proc::Child& child);
  int call_tool(const std::vector<std::string>& argv);
  void pause(std::chrono::milliseconds time);

 private:
  Status keep_end() const;
  bool run_again(const Verdict& verdict);
  bool requeue();
  bool was_queued_again();
  bool go_on_in_next(const std::vector<std::string>& left_out);
  std::string told_by_slurm() const;
  void leave_preempted(std::string_view told);
  void leave_out(const std::vector<std::string>& nodes);

  io::Loop& loop_;
  JobFolder folder_;
  BatchState state_;
  std::vector<std::string> unfit_;  // nodes that the pre-flight found bad
  std::function<void()> before_end_;
};

// Returns Slurm's id of this process's job: "12_3" for a task of an array.
std::string number_of_job(const JobFolder& folder);
// Returns the names of the nodes of this process's job; empty if Slurm's list cannot be read.
std::vector<std::string> nodes_of_job();
// Returns the number of earlier runs, including runs of earlier jobs in a chain.
int run_number(const JobFolder& folder);

}  // namespace lockstep::slurm
