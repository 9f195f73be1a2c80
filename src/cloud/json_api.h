// A service that speaks JSON and knows us by one secret in the Authorization field: questions are
// asked again where that does no harm, and what it refuses becomes one value.
#pragma once

#include "cloud/pace.h"
#include "cloud/provider.h"
#include "cloud/refusal.h"
#include "codec/json.h"

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::cloud {

// A service's own words for a refusal.
struct ServiceWords {
  std::string code;
  std::string message;
};

// Views: what they show must live until the answer is there.
struct JsonQuestion {
  std::string_view method = "GET";
  std::string_view target;  // path and query, coded
  std::string_view body = {};
  std::string_view shown = {};  // for messages: "terminate"
  bool repeatable = true;       // twice does no harm
  std::chrono::milliseconds timeout{10'000};
  std::chrono::milliseconds patience{20'000};  // for asking again
};

// No answer that could be used.
struct JsonFailure {
  int status = 0;  // of HTTP; 0: no answer
  bool sent = false;
  std::string code = {};         // the service's; "" where it said none
  std::string said = {};         // its own words, printable
  std::string retry_after = {};  // as the answer has it
  Error error = {};              // for people: one line, printable, without the secret

  // Nobody knows whether the service did it.
  bool open() const { return sent && (status == 0 || status < 300 || status >= 500); }
};

using JsonResult = tl::expected<nlohmann::json, JsonFailure>;

class JsonApi {
 public:
  struct Settings {
    std::string title;  // "Lambda"
    std::string base;   // "https://cloud.lambda.ai"
    std::string secret;
    double pace = 1;
    ServiceWords (*words)(const nlohmann::json& answer);  // of an answer that is no success
    // Before each question goes out: waits for its turn.
    std::function<Status(Web&, const JsonQuestion&)> turn = {};
    // The service has said that it was too early.
    std::function<void(Web&, std::chrono::milliseconds)> too_early = {};
  };

  explicit JsonApi(Settings settings) : settings_(std::move(settings)) {}

  // An empty answer of success is `null`.
  JsonResult ask(Web& web, const JsonQuestion& question) const;
  // The error for words of the service that came with another status than one of failure.
  Error failed_with(std::string_view doing, ServiceWords words, int status = 200) const;

 private:
  JsonResult ask_once(Web& web, const JsonQuestion& question) const;
  JsonFailure failed(const JsonQuestion& question, const http::Answer& answer) const;

  Settings settings_;
};

// Of a launch that gave no machine.
LaunchOutcome outcome_of(const JsonFailure& failure, std::span<const RefusalRow> rows);
LaunchOutcome refused(Refusal refusal, std::string code, std::string message);

// LOCKSTEP_..._ENDPOINT, else the provider's own address.
std::string base_of(const Ground& ground, std::string_view variable, std::string_view otherwise);

}  // namespace lockstep::cloud
