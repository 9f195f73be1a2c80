// Tells how the job ended: the failure report on the console, one last line, the error file for a
// launcher above this one, and --report.
#pragma once

#include "agent/failure_report.h"
#include "agent/job_end.h"
#include "agent/job_history.h"
#include "agent/worker_spec.h"
#include "agent/worst_straggler.h"
#include "launch/launch_config.h"
#include "logs/console.h"
#include "logs/log_dir.h"
#include "status/goodput.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::agent {

// Returns one line about the end: "failed after 12.0 s, with 1 restart: rank 3 on n1 failed
// (exitcode: 1): ValueError: x".
std::string outcome_line(const FailureReport& whole, const JobHistory& history);

struct TellingPlaces {
  const launch::LaunchConfig& config;
  const Environment& environment;
  logs::Console& console;
  const logs::RunDir* run_dir;  // nullptr: the job has no log directory
  const status::Goodput& goodput;
  const std::optional<WorstStraggler::Span>& straggler;
  std::vector<std::string> events;  // the latest, as lines of JSON, for --report
};

// own: the report of this node's failures. whole: the report of all nodes. A file that cannot be
// written is logged.
void tell_outcome(const JobEnd& end, const FailureReport& own, const FailureReport& whole,
                  const JobHistory& history, const TellingPlaces& places);

}  // namespace lockstep::agent
