// The `lockstep run` processes of this user on this machine that are under way and belong to no job
// of a supervisor.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::here {

struct LocalRun {
  pid_t pid = 0;  // what the user started: signals to it reach the run
  std::int64_t started_ms = 0;
  std::string command;  // "run --nproc-per-node 8 train.py"
  std::string folder;
};

std::vector<LocalRun> local_runs();
// The run that this process leads; nullopt: it is none, or is gone.
std::optional<LocalRun> find_run(pid_t pid);

}  // namespace lockstep::jobs::here
