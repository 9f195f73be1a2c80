// The log line for a new start of all workers, with the reason. Pure.
#pragma once

#include "agent/failure_report.h"
#include "agent/job_history.h"

#include <string>

namespace lockstep::agent {

struct RestartFacts {
  bool counted = true;  // false: the workers start again only because a node joined or left
  int restarts = 0;     // used up by the job so far
  int restarts_left = 0;
  int nodes = 1;
};

// Formats the line. before: the failures of the attempt that ended, which is the last one in the
// history.
std::string restart_notice(const RestartFacts& facts, const JobHistory& history,
                           const FailureReport& before);

}  // namespace lockstep::agent
