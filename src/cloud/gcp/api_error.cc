#include "cloud/gcp/api_error.h"

#include "base/text.h"
#include "cloud/gcp/values.h"
#include "cloud/refusal.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::cloud::gcp {
namespace {

constexpr std::size_t kMessageLimit = 400;  // has room for the link that enables an API

// A quota counts for a region, capacity for a zone. Google writes some codes in two forms.
constexpr std::array kMeanings = {
    RefusalRow{"ZONE_RESOURCE_POOL_EXHAUSTED*", Refusal::next_zone},
    RefusalRow{"insufficientCapacity", Refusal::next_zone},
    RefusalRow{"resource_availability", Refusal::next_zone},
    RefusalRow{"stockout", Refusal::next_zone},
    RefusalRow{"resourceInUseByAnotherResource", Refusal::next_zone},
    RefusalRow{"RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", Refusal::next_zone},
    RefusalRow{"UNSUPPORTED_OPERATION", Refusal::next_zone},
    RefusalRow{"RESOURCE_NOT_READY", Refusal::next_zone},
    RefusalRow{"resourceNotReady", Refusal::next_zone},
    RefusalRow{"RESOURCE_OPERATION_RATE_EXCEEDED", Refusal::next_zone},
    RefusalRow{"VM_MIN_COUNT_NOT_REACHED", Refusal::next_zone},
    RefusalRow{"INTERNAL_ERROR", Refusal::next_zone},
    RefusalRow{"QUOTA_EXCEEDED", Refusal::next_region},
    RefusalRow{"quotaExceeded", Refusal::next_region},
    RefusalRow{"limitExceeded", Refusal::next_region},
    RefusalRow{"accessNotConfigured", Refusal::provider_out},
    RefusalRow{"SERVICE_DISABLED", Refusal::provider_out},
    RefusalRow{"BILLING*", Refusal::provider_out},
    RefusalRow{"billing*", Refusal::provider_out},
    RefusalRow{"IAM_PERMISSION_DENIED", Refusal::provider_out},
    RefusalRow{"ACCESS_TOKEN*", Refusal::provider_out},
    RefusalRow{"CONSUMER_*", Refusal::provider_out},
    RefusalRow{"USER_PROJECT_DENIED", Refusal::provider_out},
    RefusalRow{"VPC_NOT_FOUND", Refusal::provider_out},
    RefusalRow{"authError", Refusal::provider_out},
    RefusalRow{"forbidden", Refusal::provider_out},
    RefusalRow{"PERMISSION_DENIED", Refusal::provider_out},
    RefusalRow{"UNAUTHENTICATED", Refusal::provider_out},
    RefusalRow{"invalid*", Refusal::stop},
    RefusalRow{"INVALID*", Refusal::stop},
    RefusalRow{"badRequest", Refusal::stop},
    RefusalRow{"required", Refusal::stop},
    RefusalRow{"FAILED_PRECONDITION", Refusal::stop},
    RefusalRow{"conditionNotMet", Refusal::stop},
    RefusalRow{"alreadyExists", Refusal::stop},
    RefusalRow{"RESOURCE_ALREADY_EXISTS", Refusal::stop},
    RefusalRow{"notFound", Refusal::stop},
    RefusalRow{"RESOURCE_NOT_FOUND", Refusal::stop},
};

constexpr std::array<std::string_view, 5> kPassing = {"rateLimitExceeded", "userRateLimitExceeded",
                                                      "RATE_LIMIT_EXCEEDED", "backendError",
                                                      "internalError"};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_known(std::string_view code) {
  return refusal_of(kMeanings, code) != Refusal::unknown ||
         std::find(kPassing.begin(), kPassing.end(), code) != kPassing.end();
}

// Keeps the first code that has a row, else the first code. Answers may carry several codes, from
// vague to exact.
void offer_code(std::string& code, const std::string& next) {
  if (next.empty() || is_known(code)) return;
  if (code.empty() || is_known(next)) code = printable(next, 80);
}

std::string message_of(const nlohmann::json& error, std::string_view path) {
  return printable(text_at(error, path), kMessageLimit);
}

// Reads `details` of answers and `errorDetails` of operations.
void read_details(const nlohmann::json& details, ApiFailure& error) {
  for (const nlohmann::json* detail : items_at(details, "")) {
    offer_code(error.code, text_at(*detail, "reason"));
    const nlohmann::json& info = at(*detail, "errorInfo");
    offer_code(error.code, text_at(info, "reason"));
    // Google may name zones with capacity. Renting tries those first.
    for (const std::string& zone : split(text_at(info, "metadatas/zonesAvailable"), ','))
      if (!zone.empty() && error.zones.size() < 20)
        error.zones.push_back(printable(strip(zone), 40));
  }
}

}  // namespace

ApiFailure error_of_answer(int status, std::string_view body) {
  ApiFailure error = refusal_with(status, "", "");
  const nlohmann::json answer = codec::parse_json(body);
  const nlohmann::json& said = at(answer, "error");
  if (said.is_string()) {  // the form of the token endpoint
    error.code = printable(text_at(answer, "error"), 80);
    error.message = message_of(answer, "error_description");
  } else {
    error.message = message_of(said, "message");
    read_details(at(said, "details"), error);
    for (const nlohmann::json* one : items_at(said, "errors"))
      offer_code(error.code, text_at(*one, "reason"));
    if (error.code.empty()) offer_code(error.code, text_at(said, "status"));
  }
  if (error.code.empty()) error.code = fmt::format("HTTP {}", status);
  if (error.message.empty()) error.message = fmt::format("answered with HTTP {}", status);
  error.passing = is_passing(error);
  return error;
}

bool error_of_operation(const nlohmann::json& operation, ApiFailure& error) {
  const std::vector<const nlohmann::json*> all = items_at(operation, "error/errors");
  if (all.empty()) return false;
  error = {};
  for (const nlohmann::json* one : all) {
    const std::string before = error.code;
    offer_code(error.code, text_at(*one, "code"));
    if (error.code != before) error.message = message_of(*one, "message");
    read_details(at(*one, "errorDetails"), error);
  }
  if (error.code.empty()) error.code = "UNKNOWN";
  if (error.message.empty()) error.message = message_of(operation, "httpErrorMessage");
  error.passing = is_passing(error);
  return true;
}

// A code that the table knows says more than the status: ZONE_RESOURCE_POOL_EXHAUSTED comes as 503.
bool is_passing(const ApiFailure& error) {
  if (std::find(kPassing.begin(), kPassing.end(), error.code) != kPassing.end()) return true;
  return (error.status == 429 || error.status >= 500) && !is_known(error.code);
}

Refusal meaning_of(const ApiFailure& error) {
  if (error.kind == ApiFailure::Kind::canceled) return Refusal::stop;
  // All zones share the address and the token: do not try another zone.
  if (!error.refused()) return Refusal::provider_out;
  const std::string_view said = error.message;
  const bool missing = has(said, "not exist") || has(said, "not found");
  const Refusal meaning = refusal_of(kMeanings, error.code);
  // This quota is of all regions together: do not try another region.
  if (meaning == Refusal::next_region && has(said, "GPUS_ALL_REGIONS"))
    return Refusal::provider_out;
  // Google has removed a zone that a kept list still has.
  if (meaning == Refusal::stop && has(said, "field 'zone'")) return Refusal::next_zone;
  if (meaning == Refusal::stop && missing) {
    // The zone does not have this type. Another zone may have the type.
    if (has(said, "machineType") || has(said, "acceleratorType") || has(said, "Machine type"))
      return Refusal::next_zone;
    if (has(said, "/networks/")) return Refusal::provider_out;
  }
  if (error.status == 401) return Refusal::provider_out;
  if (meaning == Refusal::unknown && is_passing(error)) return Refusal::next_zone;
  return meaning;
}

LaunchOutcome outcome_of(ApiFailure error) {
  // A canceled call may have reached Google before.
  const bool canceled_too_late = error.kind == ApiFailure::Kind::canceled && error.maybe_done;
  if (error.kind == ApiFailure::Kind::unanswered || canceled_too_late)
    return {.kind = LaunchOutcome::Kind::unknown, .message = std::move(error.message)};
  const Refusal refusal = meaning_of(error);
  if (!error.refused())
    error.code = error.kind == ApiFailure::Kind::no_keys  ? "keys"
                 : error.kind == ApiFailure::Kind::unsent ? "unreachable"
                                                          : "stopped";
  return {.kind = LaunchOutcome::Kind::refused,
          .refusal = refusal,
          .code = std::move(error.code),
          .message = std::move(error.message),
          .zones_to_try = std::move(error.zones)};
}

Failure failure_of(const ApiFailure& error, std::string_view doing) {
  Errc code = Errc::unavailable;
  if (error.kind == ApiFailure::Kind::canceled) code = Errc::canceled;
  if (error.kind == ApiFailure::Kind::no_keys || error.status == 401 || error.status == 403)
    code = Errc::denied;
  if (error.status == 404) code = Errc::not_found;
  // Without an answer the message already says what was asked.
  if (!error.refused()) return fail(code, error.message);
  return fail(code, fmt::format("Google Compute: {}: {} ({})", doing, error.message, error.code));
}

}  // namespace lockstep::cloud::gcp
