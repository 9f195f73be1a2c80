// The `lockstep run` processes of this user on this machine that are under way and belong to no job
// of a supervisor.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::cli {

struct LocalRun {
  pid_t pid = 0;  // what the user started: signals to it reach the run
  std::int64_t started_ms = 0;
  std::string command;  // "run --nproc-per-node 8 train.py"
  std::string folder;
};

std::vector<LocalRun> local_runs();

}  // namespace lockstep::cli
