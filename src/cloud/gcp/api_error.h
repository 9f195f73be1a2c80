// Reads Google's errors and, by tables, their meaning for a launch. Pure.
#pragma once

#include "cloud/asker.h"
#include "cloud/provider.h"
#include "codec/json.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::gcp {

// Reads an answer that is not 2xx, also of the token endpoint.
ApiFailure error_of_answer(int status, std::string_view body);
// Reads a finished operation into `error`. Returns false if it succeeded.
bool error_of_operation(const nlohmann::json& operation, ApiFailure& error);

// Returns whether the same call may succeed a little later.
bool is_passing(const ApiFailure& error);
Refusal meaning_of(const ApiFailure& error);
LaunchOutcome outcome_of(ApiFailure error);
// `doing`: "the list of machines".
Failure failure_of(const ApiFailure& error, std::string_view doing);

}  // namespace lockstep::cloud::gcp
