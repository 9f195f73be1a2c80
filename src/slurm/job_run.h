// One run of a job, for the process that speaks for it: the batch step, or the one on another node
// that has taken its place. Judges how the run ended, writes it down, and has it queued again where
// that is worth it. Everything runs on the loop, which must not be running when these are called.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "proc/spawn.h"
#include "slurm/job_folder.h"
#include "slurm/verdict.h"

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::slurm {

class JobRun {
 public:
  JobRun(io::Loop& loop, std::string folder);

  const JobFolder& folder() const { return folder_; }
  BatchState& state() { return state_; }
  const BatchState& state() const { return state_; }
  Status keep() const { return folder_.keep(state_); }

  // Nodes that the pre-flight has found bad, once the run is concluded.
  const std::vector<std::string>& unfit() const { return unfit_; }

  // Of the agents that have ended.
  std::vector<NodeReport> reports() const;
  // may_be_preempted: ask Slurm, if the job was stopped, whether it means to queue it again itself.
  Result<int> conclude(const BatchFacts& facts, bool may_be_preempted);
  Result<int> conclude(Verdict verdict, bool may_be_preempted);

  // In this process's environment, unless another one is given.
  Result<proc::Child> start(const std::vector<std::string>& argv) const;
  Result<proc::Child> start(const std::vector<std::string>& argv,
                            std::vector<std::string> environment) const;
  // The loop runs meanwhile.
  void wait_for(proc::Child& child);
  int call_tool(const std::vector<std::string>& argv);
  void pause(std::chrono::milliseconds time);

 private:
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
  std::vector<std::string> unfit_;  // nodes, by the pre-flight
};

// Of the job that this process belongs to.
std::vector<std::string> nodes_of_job();
std::string variable(const char* name);  // else ""
// How often it has run before, in the jobs of Slurm's before this one, too.
int run_number(const JobFolder& folder);

}  // namespace lockstep::slurm
