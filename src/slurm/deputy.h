// Speaks for a job whose batch step is gone with its node: brings what the nodes say into the job's
// output, stops the ranks before the time limit, and writes down how the job has ended. It lives in
// the process that Slurm has started on another node.
#pragma once

#include "io/loop.h"
#include "proc/spawn.h"
#include "slurm/job_run.h"
#include "slurm/silence.h"
#include "slurm/watch_folder.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::slurm {

class Deputy {
 public:
  // state: as the one before has left it.
  Deputy(io::Loop& loop, std::string folder, WatchFolder watch, BatchState state);

  // Every second.
  void look();
  // Whether the agents of all other nodes have ended, or their nodes are gone.
  bool is_alone() const;
  // To be called when the loop does not run. Ends the job in Slurm too, or has it queued again.
  Result<int> conclude(BatchFacts facts);

 private:
  struct Peer {
    Silence silence;
    bool ended = false;
  };

  void look_at_peers(const std::vector<std::string>& names);
  void collect(const std::string& name);
  void ask_for_the_end();
  void stop_in_time();
  void take_over_script(const std::string& folder);
  bool has_other_launches() const;
  bool script_lives();

  io::Loop& loop_;
  JobRun run_;
  std::string before_;         // the node whose place it has taken
  std::optional<JobRun> job_;  // of a user's own script; run_ is a launch of it
  Silence script_;
  WatchFolder watch_;
  std::map<std::string, Peer> peers_;
  std::map<std::string, std::int64_t> collected_;  // bytes of each log
  int looks_ = 0;
  std::int64_t end_s_ = 0;  // when the job's time is up; 0: not known
  bool lead_ = false;
  std::vector<proc::Child> helpers_;
};

}  // namespace lockstep::slurm
