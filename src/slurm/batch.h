// The process that a job's script becomes on the first node: it starts the step of agents, says
// what Slurm's signals mean, and knows at the end what became of the job.
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

// What the step is.
enum class BatchRole {
  job,     // srun with the agents: the whole job
  script,  // the user's own script, on this node
  launch,  // srun with agents, called by such a script
};

struct BatchCall {
  BatchRole role = BatchRole::job;
  std::string folder;             // of the job
  std::string carry = {};         // where sbcast puts our binary on all nodes; empty: they see it
  Carry how = Carry::always;      // with a `carry`
  bool requeue = false;           // where another run is worth it
  std::optional<int> chain = {};  // as in BatchState
  int lead_s = 0;                 // Slurm tells us so long before the time limit; 0: it does not
  std::vector<std::string> step;  // srun and its words
};

class Batch {
 public:
  explicit Batch(const BatchCall& call);
  // Returns the exit code of the job. Expects the handled signals blocked.
  Result<int> run();

 private:
  Status carry_binary();
  Status run_own_binary();
  void on_signal(int number);
  void signal_ranks(int number);
  // Of a script, in batch_roles.cc.
  void pass_on(int number);
  std::vector<std::string> environment_of_script() const;
  std::optional<Verdict> last_launch() const;
  void await_launches();
  void remember_earlier();
  void beat();
  void end_step_of_lost_nodes();
  Result<int> conclude();
  std::optional<int> code_of_successor();

  BatchCall call_;
  BatchFacts facts_;
  io::Loop loop_;
  JobRun run_;
  std::unique_ptr<WatchFolder> watch_;
  io::Timer next_beat_;
  int beats_ = 0;
  int beats_since_end_ = 0;  // of all agents that could end
  std::unique_ptr<proc::SignalWatch> signals_;
  std::optional<proc::Child> step_;
  std::vector<proc::Child> helpers_;  // scancel, which nobody waits for
};

}  // namespace lockstep::slurm
