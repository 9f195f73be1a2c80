// The line that says that all workers are started again, and why. Pure.
#pragma once

#include "agent/failure_report.h"
#include "agent/job_history.h"

#include <string>

namespace lockstep::agent {

struct RestartFacts {
  bool counted = true;  // as a restart, and not only because a node came or went
  int restarts = 0;     // that the job has used up
  int restarts_left = 0;
  int nodes = 1;
};

// before: the failures of the attempt that ended, which is the last one of the history.
std::string restart_notice(const RestartFacts& facts, const JobHistory& history,
                           const FailureReport& before);

}  // namespace lockstep::agent
