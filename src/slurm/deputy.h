// Takes over a job whose batch step died with its node. Copies the nodes' output into the job's
// output file, stops the ranks before the time limit, and records how the job ended. Lives in the
// NodeStep process of the node that claimed the job.
#pragma once

#include "io/loop.h"
#include "proc/spawn.h"
#include "slurm/heartbeat_watch.h"
#include "slurm/job_run.h"
#include "slurm/watch_folder.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::slurm {

class Deputy {
 public:
  // Takes the job over from `state.host`. state: as the dead process left it.
  Deputy(io::Loop& loop, std::string folder, WatchFolder watch, BatchState state);

  // Does one round of work: heartbeat, output, peers, time limit. Call every second.
  void look();
  // Returns whether the agents of all other nodes have ended or their nodes are gone.
  bool is_alone() const;
  // Concludes the run and returns the job's exit code. Then ends the job in Slurm too, or has Slurm
  // queue it again. Call while the loop is not running.
  Result<int> conclude(BatchFacts facts);

 private:
  struct Peer {
    HeartbeatWatch beats;
    bool ended = false;
  };

  void look_at_peers(const std::vector<std::string>& names);
  void collect(const std::string& name);
  void collect_all(const std::vector<std::string>& names);
  void ask_for_the_end();
  void stop_in_time();
  void take_over_script(const std::string& folder);
  bool has_other_launches() const;
  bool script_lives();

  io::Loop& loop_;
  JobRun run_;
  std::string before_;         // node of the dead batch step
  std::optional<JobRun> job_;  // the script's run, if run_ is a launch in a script
  HeartbeatWatch script_;
  WatchFolder watch_;
  std::map<std::string, Peer> peers_;
  std::map<std::string, std::int64_t> collected_;  // bytes already copied of each node's log
  int looks_ = 0;
  std::int64_t end_s_ = 0;  // Unix seconds of the time limit; 0: unknown
  bool lead_ = false;
  std::vector<proc::Child> helpers_;
};

}  // namespace lockstep::slurm
