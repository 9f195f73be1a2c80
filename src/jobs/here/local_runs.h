// Finds this user's `lockstep run` processes on this machine outside of supervised jobs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::here {

struct LocalRun {
  pid_t pid = 0;  // the process the user started, which passes signals on to the run
  pid_t parent = 0;
  std::int64_t started_ms = 0;
  std::string command;                  // "run --nproc-per-node 8 train.py"
  std::vector<std::string> words = {};  // the same, as the user gave them
  std::string folder = {};
};

// Returns all such runs, in no order.
std::vector<LocalRun> local_runs();
// Returns the run led by this process; nullopt: the process leads no run, or is gone.
std::optional<LocalRun> find_run(pid_t pid);

}  // namespace lockstep::jobs::here
