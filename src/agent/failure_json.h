// One failure as JSON. Shared by --report (report_json.cc) and the exchange of nodes
// (failure_exchange.cc).
#pragma once

#include "agent/failure_report.h"
#include "codec/json.h"

namespace lockstep::agent {

// Returns the failure's fields in the order of docs/report.md.
nlohmann::ordered_json failure_as_json(const WorkerFailure& failure);

}  // namespace lockstep::agent
