#include "cloud/gcp/api.h"

#include "base/text.h"
#include "cloud/gcp/values.h"
#include "cloud/json_api.h"
#include "cloud/pace.h"
#include "codec/url.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::cloud::gcp {
namespace {

using std::chrono::milliseconds;

constexpr std::array<std::string_view, 3> kHosts = {"https://compute.googleapis.com",
                                                    "https://cloudbilling.googleapis.com",
                                                    "https://cloudresourcemanager.googleapis.com"};
constexpr milliseconds kLongPoll{130'000};  // Google answers after two minutes at the latest
constexpr milliseconds kShortWait{250};
constexpr milliseconds kAbsence{3'000};

tl::unexpected<ApiError> no_answer(ApiError::Kind kind, std::string message) {
  return tl::make_unexpected(ApiError{.kind = kind, .message = std::move(message)});
}

// A token endpoint that is not reached says nothing about the keys.
tl::unexpected<ApiError> without_token(const Error& error) {
  ApiError::Kind kind = ApiError::Kind::keys;
  if (error.code == Errc::canceled) kind = ApiError::Kind::canceled;
  if (error.code == Errc::unavailable || error.code == Errc::timeout) kind = ApiError::Kind::unsent;
  return tl::make_unexpected(
      ApiError{.kind = kind, .message = error.message, .lasting = error.code == Errc::timeout});
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 100 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

Api::Api(Credentials credentials, const Ground& ground)
    : tokens_(std::move(credentials)),
      endpoint_(base_of(ground, "LOCKSTEP_GCE_ENDPOINT", "")),
      pace_(pace_of(ground)) {}

std::string Api::path(std::string_view rest) const {
  return fmt::format("/compute/v1/projects/{}{}", project(), rest);
}

ApiAnswer Api::ask_once(Web& web, const ApiCall& call, std::string& retry_after) {
  retry_after.clear();
  // A token may be taken back before its time: once more with a new one.
  for (bool again = true;; again = false) {
    auto token = tokens_.get(web);
    if (!token) return without_token(token.error());
    Question question{.method = std::string(call.method),
                      .base = endpoint_.empty()
                                  ? std::string(kHosts[static_cast<std::size_t>(call.host)])
                                  : endpoint_,
                      .target = call.target,
                      .fields = {{"authorization", "Bearer " + *token}},
                      .body = call.body,
                      .timeout = call.timeout,
                      .body_limit = 32U << 20,
                      .gzip = true,
                      .repeatable = true,
                      .shown = fmt::format("Google Compute: {}", call.shown)};
    if (!call.body.empty()) question.fields.push_back({"content-type", "application/json"});
    if (const auto& payer = credentials().quota_project; !payer.empty())
      question.fields.push_back({"x-goog-user-project", payer});
    const Reply reply = web.ask(question);
    if (!reply.answer) {
      const bool canceled = reply.answer.error().code == Errc::canceled;
      const bool may_be_done = reply.sent && !(canceled && call.method == "GET");
      ApiError error{.kind = may_be_done ? ApiError::Kind::unanswered
                             : canceled  ? ApiError::Kind::canceled
                                         : ApiError::Kind::unsent,
                     .message = reply.answer.error().message,
                     .lasting = reply.answer.error().code != Errc::unavailable};
      return tl::make_unexpected(std::move(error));
    }
    const http::ResponseHead& head = reply.answer->head;
    if (head.status == 401 && again) {
      tokens_.refused(*token);
      continue;
    }
    if (head.status >= 200 && head.status < 300) {
      nlohmann::json answer =
          codec::parse_json(reply.answer->body, {.bytes = 32U << 20, .values = call.values});
      if (answer.is_object()) return answer;
      return no_answer(ApiError::Kind::unanswered, "what it answers is no JSON");
    }
    retry_after = head.field("retry-after");
    ApiError error = error_of_answer(head.status, reply.answer->body);
    error.message = tokens_.clean(std::move(error.message));
    return tl::make_unexpected(std::move(error));
  }
}

ApiAnswer Api::ask(Web& web, const ApiCall& call) {
  const std::int64_t began = web.now_ms();
  Backoff backoff(began, call.patience, pace_);
  std::string retry_after;
  while (true) {
    ApiAnswer answer = ask_once(web, call, retry_after);
    if (answer) return answer;
    ApiError& error = answer.error();
    // Who reads may ask again; what a launch has done must be looked at first. A deadline is not
    // waited for twice, and who is not there now is not waited for long.
    const bool reading = call.method == "GET" && error.kind == ApiError::Kind::unanswered;
    const bool absent = reading || error.kind == ApiError::Kind::unsent;
    if (error.lasting || !(absent || is_passing(error))) return answer;
    if (absent && web.now_ms() - began > kAbsence.count()) return answer;
    const auto pause = backoff.next(web.now_ms(), retry_after);
    if (!pause) {
      // Nobody knows what a server that failed has done before.
      if (error.status >= 500 && call.method != "GET") error.kind = ApiError::Kind::unanswered;
      return answer;
    }
    if (!web.pause(*pause)) return no_answer(ApiError::Kind::canceled, "stopped");
  }
}

tl::expected<void, ApiError> Api::ask_pages(
    Web& web, ApiCall call, int most_pages,
    const std::function<bool(const nlohmann::json&)>& take) {
  const std::string first = call.target;
  for (int page = 0; page < most_pages; ++page) {
    ApiAnswer answer = ask(web, call);
    if (!answer) return tl::make_unexpected(std::move(answer).error());
    const bool more = take(*answer);
    const std::string next = text_at(*answer, "nextPageToken");
    if (next.empty() || !more) return {};
    call.target =
        fmt::format("{}{}pageToken={}", first, first.find('?') == std::string::npos ? '?' : '&',
                    codec::percent_code(next));
  }
  return no_answer(ApiError::Kind::unanswered,
                   fmt::format("the list has more than {} pages", most_pages));
}

tl::expected<void, ApiError> Api::wait(Web& web, nlohmann::json operation, milliseconds patience) {
  const std::int64_t until = web.now_ms() + patience.count();
  const std::string name = text_at(operation, "name");
  const std::string zone = last_part(text_at(operation, "zone"));
  const std::string scope = zone.empty() ? "/global" : "/zones/" + zone;
  while (text_at(operation, "status") != "DONE") {
    if (!is_name(name) || (!zone.empty() && !is_name(zone)))
      return no_answer(ApiError::Kind::unanswered, "what it answers is no operation");
    const std::int64_t now = web.now_ms();
    if (now >= until) return no_answer(ApiError::Kind::unanswered, "the operation is not done yet");
    ApiAnswer answer = ask(web, {.method = "POST",
                                 .target = path(fmt::format("{}/operations/{}/wait", scope, name)),
                                 .shown = "waiting for an operation",
                                 .timeout = std::min(kLongPoll, milliseconds(until - now + 1000)),
                                 .patience = milliseconds(until - now)});
    if (!answer && answer.error().kind != ApiError::Kind::unanswered &&
        answer.error().kind != ApiError::Kind::unsent) {
      // Refused, but the operation goes on: nothing is known of it.
      if (answer.error().kind == ApiError::Kind::refused)
        answer.error().kind = ApiError::Kind::unanswered;
      return tl::make_unexpected(std::move(answer).error());
    }
    if (answer) operation = std::move(*answer);
    // It promises no more than its best, and may answer at once.
    if (text_at(operation, "status") != "DONE" && web.now_ms() - now < 1000)
      if (!web.pause(kShortWait)) return no_answer(ApiError::Kind::canceled, "stopped");
  }
  ApiError error;
  if (!error_of_operation(operation, error)) return {};
  error.message = tokens_.clean(std::move(error.message));
  return tl::make_unexpected(std::move(error));
}

}  // namespace lockstep::cloud::gcp
