// One failure in JSON, for those files that write it.
#pragma once

#include "agent/failure_report.h"
#include "codec/json.h"

namespace lockstep::agent {

nlohmann::ordered_json failure_as_json(const WorkerFailure& failure);

}  // namespace lockstep::agent
