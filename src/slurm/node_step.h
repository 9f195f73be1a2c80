// The process that Slurm starts on every node of a job. Starts the node's agent, forwards the
// agent's output, and watches whether the batch step lives. If the batch step's node dies, one of
// these processes becomes the job's Deputy.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "proc/signal_watch.h"
#include "proc/spawn.h"
#include "slurm/deputy.h"
#include "slurm/heartbeat_watch.h"
#include "slurm/job_folder.h"
#include "slurm/output_relay.h"
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
  // Runs until the agent has ended, and longer where the job needs a deputy. Returns the exit code
  // of the agent, or of the job if this process became the deputy. Call with the handled signals
  // blocked.
  Result<int> run(const std::vector<std::string>& agent);

 private:
  Status start(const std::vector<std::string>& agent);
  void on_signal(int number);
  void on_end();
  void leave_when_said();
  void look();
  void end_agent();
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
  HeartbeatWatch lease_;
  int epoch_ = 0;
  int looks_ = 0;
  bool stopped_ = false;  // Slurm sent SIGTERM or SIGINT
  bool agent_told_to_end_ = false;
  bool concluding_ = false;
  io::Fd log_;  // this node's log; open from epoch 1 on
  std::unique_ptr<Deputy> deputy_;
};

}  // namespace lockstep::slurm
