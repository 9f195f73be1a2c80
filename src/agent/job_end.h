// How the job ended, as this node knows it, and what is made of that: the failure report, of which
// text, JSON and exit code are made in turn. Pure.
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
  std::string node;             // this node's name for people
  int signal = 0;               // that ended the job, where one did
  bool default_signal = false;  // the user left it to its default action: the exit code names it
  std::string why_stopped;      // what else ended the last round: a lost node, a watchdog
  std::optional<Error> start_error;       // workers could not be started
  std::optional<Error> rendezvous_error;  // no round was reached
  std::vector<WorkerFailure> failures;    // of the last attempt on this node
  std::optional<std::int64_t> stop_sent_ms;
};

// As --report has it: "succeeded", "failed" ...
std::string outcome_word(Outcome outcome);

// Of this node's failures alone.
FailureReport own_report(const JobEnd& end);

// Of the failures that all nodes have exchanged; own, where they have exchanged none.
FailureReport whole_report(const FailureReport& own,
                           const std::vector<rendezvous::NodeReport>& nodes);

int exit_code(const JobEnd& end, const FailureReport& report, launch::ExitCodeMode mode);

}  // namespace lockstep::agent
