// What Slurm starts on every node of a job: a process that starts the agent there, passes its
// output on, and sees to it that the job is not left alone when the batch step's node dies. Then
// one of these processes becomes the job's Deputy.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "proc/signal_watch.h"
#include "proc/spawn.h"
#include "slurm/deputy.h"
#include "slurm/job_folder.h"
#include "slurm/output_relay.h"
#include "slurm/silence.h"
#include "slurm/watch_folder.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::slurm {

class NodeStep {
 public:
  explicit NodeStep(std::string folder);
  // Returns the exit code of the agent. Expects the handled signals blocked.
  Result<int> run(const std::vector<std::string>& agent);

 private:
  Status start(const std::vector<std::string>& agent);
  void on_signal(int number);
  void on_end();
  void leave_when_said();
  void look();
  bool all_is_said() const;
  bool may_leave() const;
  void claim();
  void go_on_in(int epoch);
  WatchFolder watch(int epoch) const { return {folder_, run_, epoch}; }

  JobFolder folder_;
  const int run_;
  const std::string name_;
  std::chrono::milliseconds pause_;
  io::Loop loop_;
  io::Timer next_look_;
  io::Timer last_words_;
  io::Timer next_end_;
  OutputRelay out_;
  OutputRelay err_;
  std::unique_ptr<proc::SignalWatch> signals_;
  std::optional<proc::Child> agent_;
  std::optional<io::Watch> agent_end_;
  Silence lease_;
  int epoch_ = 0;
  int looks_ = 0;
  bool stopped_ = false;  // Slurm, or somebody through it, has told us to end
  bool concluding_ = false;
  io::Fd log_;  // from epoch 1 on
  std::unique_ptr<Deputy> deputy_;
};

}  // namespace lockstep::slurm
