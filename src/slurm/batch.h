// The process that a job's batch script becomes (by exec) on the first node. Starts the step of
// agents, translates Slurm's signals, and concludes the job.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "proc/signal_watch.h"
#include "proc/spawn.h"
#include "slurm/carry.h"
#include "slurm/job_run.h"
#include "slurm/verdict.h"
#include "slurm/watch_folder.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::slurm {

// What the batch process starts.
enum class BatchRole {
  job,     // srun with the agents, which is the whole job
  script,  // the user's own script, on this node
  launch,  // srun with agents, started by a stand-in inside such a script
};

// What the agents of a step need to begin.
struct Beginning {
  int to_spare = 0;            // nodes that the first attempt can do without
  bool at_first_node = false;  // the agents meet at the first node of the job
};

struct BatchCall {
  BatchRole role = BatchRole::job;
  std::string folder;      // the job's folder
  std::string carry = {};  // where sbcast puts the binary on all nodes; empty: nodes see the folder
  Carry how = Carry::always;      // whether `carry` is used
  bool requeue = false;           // requeue the job after endings that a new run can mend
  std::optional<int> chain = {};  // as in BatchState
  int lead_s = 0;                 // seconds between Slurm's signal and the time limit; 0: no signal
  std::vector<std::string> step;  // srun or the script, with its arguments
  std::optional<Beginning> beginning = {};  // nullopt: unknown
};

class Batch {
 public:
  explicit Batch(const BatchCall& call);
  // Runs the job to its end and returns its exit code. Call with the handled signals blocked.
  // Errors: the process was not started by Slurm, or the step could not be started.
  Result<int> run();

 private:
  Status carry_binary();
  Status run_own_binary();
  void on_signal(int number);
  void signal_ranks(int number);
  // For BatchRole::script; see batch_roles.cc.
  void pass_on(int number);
  std::vector<std::string> environment_of_script() const;
  std::optional<Verdict> last_launch() const;
  void await_launches();
  void remember_earlier();
  void beat();
  void end_step_of_lost_nodes(const std::vector<NodeReport>& reports);
  void end_agents_that_cannot_begin(const std::vector<NodeReport>& reports);
  void note_last_step();
  Result<int> conclude();
  std::optional<int> code_of_successor();

  BatchCall call_;
  BatchFacts facts_;
  io::Loop loop_;
  JobRun run_;
  std::unique_ptr<WatchFolder> watch_;
  io::Timer next_beat_;
  int beats_ = 0;
  bool ends_agents_ = false;  // the lease tells the agents to end
  int beats_since_end_ = 0;   // heartbeats since the last agent that can report has reported
  std::unique_ptr<proc::SignalWatch> signals_;
  std::optional<proc::Child> step_;
  std::vector<proc::Child> helpers_;  // running scancel calls
};

}  // namespace lockstep::slurm
