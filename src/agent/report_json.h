// The JSON of --report FILE: what happened to a job, for programs. docs/report.md documents every
// field, and a test compares the two. Later versions only add fields, unless "schema" rises.
#pragma once

#include "agent/failure_report.h"
#include "agent/job_history.h"
#include "agent/worst_straggler.h"
#include "base/error.h"
#include "status/goodput.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::agent {

struct JobFacts {
  std::string node;     // this node's name
  std::string log_dir;  // empty: none
  int max_restarts = 0;
  status::Goodput goodput = status::Goodput(status::Goodput::TimePoint{});
  std::optional<WorstStraggler::Span> straggler = {};
  std::vector<std::string> events = {};  // the latest, as lines of JSON
};

// Returns one JSON object and a newline.
std::string report_json(const FailureReport& report, const JobHistory& history,
                        const JobFacts& facts);

// Returns the report of a launcher that did not begin: outcome "refused" and the reason, or
// "interrupted" if a signal stopped the launcher (canceled). Other fields: schema, versions and
// node only.
std::string refusal_json(const std::string& node, const Error& why);

}  // namespace lockstep::agent
