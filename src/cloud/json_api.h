// A client for services with JSON and a secret in the Authorization header.
#pragma once

#include "cloud/asker.h"
#include "cloud/provider.h"
#include "cloud/refusal.h"
#include "codec/json.h"

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::cloud {

// A refusal in the service's own words.
struct ServiceWords {
  std::string code;
  std::string message;
};

// A call. The views must stay valid until the answer is there.
struct JsonQuestion {
  std::string_view method = "GET";
  std::string_view target;  // path and query, percent-encoded
  std::string_view body = {};
  std::string_view shown = {};  // for messages: "terminate"
  bool repeatable = true;       // Repeat::always; else Repeat::if_not_done
  std::chrono::milliseconds timeout{10'000};
  std::chrono::milliseconds patience{20'000};  // with refusals that pass, and with no answer
};

using JsonResult = Asked<nlohmann::json>;

class JsonApi {
 public:
  struct Settings {
    std::string title;  // "Lambda"
    std::string base;   // "https://cloud.lambda.ai"
    std::string secret;
    double pace = 1;
    ServiceWords (*words)(const nlohmann::json& answer);  // reads an error
    // Called before each try: waits until the service's rate limit allows the call.
    std::function<Status(Web&, const JsonQuestion&)> turn = {};
    // Called when the service says that a call came too early (429).
    std::function<void(Web&, std::chrono::milliseconds)> too_early = {};
  };

  explicit JsonApi(Settings settings) : settings_(std::move(settings)) {}

  // Returns the JSON of an answer of success; null for an empty body.
  JsonResult ask(Web& web, const JsonQuestion& question) const;
  // Makes the error for a refusal in an answer of success, as GraphQL has it.
  Error refused(std::string_view doing, ServiceWords words) const;

 private:
  class Try;

  Settings settings_;
};

// Returns the outcome of a failed launch. rows: the provider's codes, plus "unreachable" and
// "http-404".
LaunchOutcome outcome_of(const ApiFailure& failure, std::span<const RefusalRow> rows);
LaunchOutcome refused(Refusal refusal, std::string code, std::string message);

// Returns the address in a variable like LOCKSTEP_..._ENDPOINT, else `otherwise`. The address does
// not end with a slash.
std::string base_of(const Ground& ground, std::string_view variable, std::string_view otherwise);

}  // namespace lockstep::cloud
