// The end of the job as seen by this node, and the resulting failure report. Text, JSON and exit
// code are all derived from this report. Pure.
#pragma once

#include "agent/failure_report.h"
#include "agent/worker_group.h"
#include "launch/launch_config.h"
#include "rendezvous/backend.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::agent {

struct JobEnd {
  Outcome outcome = Outcome::succeeded;
  std::string title;  // of the report: "train.py"
  std::string run_id;
  std::string image = {};  // of --container; empty: none
  std::string node;        // this node's name for the user
  int signal = 0;          // the signal that ended the job; 0: none
  // The signal was an unlisted one with its default action: the exit code names it.
  bool default_signal = false;
  std::string why_stopped;  // other reason that ended the last round: a lost node, a watchdog
  std::vector<std::string> others = {};   // where this node's ranks were when they were stopped
  std::optional<Error> start_error;       // workers could not be started
  std::optional<Error> rendezvous_error;  // no round was reached
  std::vector<WorkerFailure> failures;    // of the last attempt on this node
  std::optional<std::int64_t> stop_sent_ms;
};

// Returns the outcome as --report writes it: "succeeded", "failed" ...
std::string outcome_word(Outcome outcome);

// Makes the report of this node's failures alone.
FailureReport own_report(const JobEnd& end);

// Makes the report of the failures that all nodes exchanged. Returns `own` if no reports were
// exchanged.
FailureReport whole_report(const FailureReport& own,
                           const std::vector<rendezvous::NodeReport>& nodes);

// Returns the process's exit code. `report` is the whole report. With ExitCodeMode::worker the code
// is the root cause's own.
int exit_code(const JobEnd& end, const FailureReport& report, launch::ExitCodeMode mode);

}  // namespace lockstep::agent
