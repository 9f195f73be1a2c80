// One failure in JSON, for those files that write it.
#pragma once

#include "agent/failure_report.h"

#include <nlohmann/json.hpp>

namespace lockstep::agent {

nlohmann::ordered_json failure_as_json(const WorkerFailure& failure);
// Seen after the agent's own stop, and not recorded before it.
bool is_consequence(const FailureReport& report, const WorkerFailure& failure);

}  // namespace lockstep::agent
