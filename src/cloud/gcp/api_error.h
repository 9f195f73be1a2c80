// What Google says when it refuses, and what that means for a launch: pure, with the tables.
#pragma once

#include "base/error.h"
#include "cloud/provider.h"
#include "codec/json.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::gcp {

struct ApiError {
  enum class Kind {
    refused,     // Google said so
    unsent,      // not a byte has arrived
    unanswered,  // it may have been done
    keys,        // there is no token
    canceled,    // the user asked to stop
  };

  Kind kind = Kind::refused;
  int status = 0;                       // HTTP's; 0: of an operation
  std::string code = {};                // "ZONE_RESOURCE_POOL_EXHAUSTED"
  std::string message = {};             // one line, printable
  std::vector<std::string> zones = {};  // that have what was asked for
  bool lasting = false;                 // unanswered, and would be again: a deadline, a bad address
};

// Of an answer that is not 2xx, also of a token endpoint.
ApiError error_of_answer(int status, std::string_view body);
// Of an operation that is done. false: all went well.
bool error_of_operation(const nlohmann::json& operation, ApiError& error);

// The same question may be answered a little later.
bool is_passing(const ApiError& error);
Refusal meaning_of(const ApiError& error);
LaunchOutcome outcome_of(ApiError error);
// `doing`: "the list of machines".
Failure failure_of(const ApiError& error, std::string_view doing);

}  // namespace lockstep::cloud::gcp
