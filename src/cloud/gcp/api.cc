#include "cloud/gcp/api.h"

#include "base/text.h"
#include "cloud/gcp/values.h"
#include "cloud/json_api.h"
#include "cloud/pace.h"
#include "codec/url.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::cloud::gcp {
namespace {

using std::chrono::milliseconds;

constexpr std::array<std::string_view, 3> kHosts = {"https://compute.googleapis.com",
                                                    "https://cloudbilling.googleapis.com",
                                                    "https://cloudresourcemanager.googleapis.com"};
constexpr milliseconds kLongPoll{130'000};  // Google answers after two minutes at the latest
constexpr milliseconds kShortWait{250};
constexpr milliseconds kAbsence{3'000};

Asked<void> no_answer(ApiFailure::Kind kind, std::string message) {
  ApiFailure failure;
  failure.kind = kind;
  failure.message = std::move(message);
  return tl::make_unexpected(std::move(failure));
}

// A token endpoint that does not answer says nothing about the credentials.
ApiFailure without_token(const Error& error) {
  ApiFailure failure = without_answer(error, false);
  if (error.code != Errc::canceled && error.code != Errc::unavailable &&
      error.code != Errc::timeout)
    failure.kind = ApiFailure::Kind::no_keys;
  return failure;
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

class Api::Try : public ApiTry {
 public:
  Try(Api& api, const ApiCall& call) : api_(api), call_(call) {}

  Asked<Question> question(Web& web) override {
    auto token = api_.tokens_.get(web);
    if (!token) return tl::make_unexpected(without_token(token.error()));
    token_ = *std::move(token);
    const std::string& fake = api_.endpoint_;
    Question question{
        .method = std::string(call_.method),
        .base = fake.empty() ? std::string(kHosts[static_cast<std::size_t>(call_.host)]) : fake,
        .target = call_.target,
        .fields = {{"authorization", "Bearer " + token_}},
        .body = call_.body,
        .timeout = call_.timeout,
        .body_limit = 32U << 20,
        .gzip = true,
        .repeatable = true,
        .shown = fmt::format("Google Compute: {}", call_.shown)};
    if (!call_.body.empty()) question.fields.push_back({"content-type", "application/json"});
    // A user's credentials name the project that pays for the calls themselves.
    if (const auto& payer = api_.credentials().quota_project; !payer.empty())
      question.fields.push_back({"x-goog-user-project", payer});
    return question;
  }

  ApiFailure refusal(const http::Answer& answer) override {
    ApiFailure failure = error_of_answer(answer.head.status, answer.body);
    failure.message = api_.tokens_.clean(std::move(failure.message));
    return failure;
  }

  // Google may withdraw a token early. Retry once with a new token.
  bool mends(Web& /*web*/, const http::Answer& /*answer*/, const ApiFailure& failure) override {
    if (failure.status != 401 || std::exchange(renewed_, true)) return false;
    // Drop only this token: another thread may have fetched a new token meanwhile.
    api_.tokens_.refused(token_);
    return true;
  }

 private:
  Api& api_;
  const ApiCall& call_;
  std::string token_;
  bool renewed_ = false;
};

ApiAnswer Api::ask(Web& web, const ApiCall& call) {
  const bool reads = call.method == "GET";
  Try one(*this, call);
  auto body = ask_api(web, one,
                      {.repeat = reads ? Repeat::always : Repeat::after_failure,
                       .patience = call.patience,
                       .absence = std::min(call.patience, kAbsence),
                       .pace = pace_});
  if (!body) {
    ApiFailure& failure = body.error();
    // A server that fails (5xx) until patience ends may have carried out the call.
    if (failure.refused() && failure.passing && failure.status >= 500 && !reads)
      failure.kind = ApiFailure::Kind::unanswered;
    return tl::make_unexpected(std::move(failure));
  }
  nlohmann::json answer = codec::parse_json(*body, {.bytes = 32U << 20, .values = call.values});
  if (answer.is_object()) return answer;
  return tl::make_unexpected(unreadable("the answer is not JSON"));
}

Asked<void> Api::ask_pages(Web& web, ApiCall call, int most_pages,
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
  return no_answer(ApiFailure::Kind::unanswered,
                   fmt::format("the list has more than {} pages", most_pages));
}

Asked<void> Api::wait(Web& web, nlohmann::json operation, milliseconds patience) {
  const std::int64_t until = web.now_ms() + patience.count();
  const std::string name = text_at(operation, "name");
  const std::string zone = last_part(text_at(operation, "zone"));
  const std::string scope = zone.empty() ? "/global" : "/zones/" + zone;
  // Google answers `wait` after two minutes at the latest, so repeat until the status is DONE.
  while (text_at(operation, "status") != "DONE") {
    if (!is_name(name) || (!zone.empty() && !is_name(zone)))
      return no_answer(ApiFailure::Kind::unanswered, "the answer is not an operation");
    const std::int64_t now = web.now_ms();
    if (now >= until)
      return no_answer(ApiFailure::Kind::unanswered, "the operation is not done yet");
    ApiAnswer answer = ask(web, {.method = "POST",
                                 .target = path(fmt::format("{}/operations/{}/wait", scope, name)),
                                 .shown = "waiting for an operation",
                                 .timeout = std::min(kLongPoll, milliseconds(until - now + 1000)),
                                 .patience = milliseconds(until - now)});
    if (!answer && answer.error().kind != ApiFailure::Kind::unanswered &&
        answer.error().kind != ApiFailure::Kind::unsent) {
      // The wait was refused, but the operation goes on.
      if (answer.error().kind == ApiFailure::Kind::refused)
        answer.error().kind = ApiFailure::Kind::unanswered;
      return tl::make_unexpected(std::move(answer).error());
    }
    // Without an answer ask again: the operation goes on at Google, whether this client waits or
    // not.
    if (answer) operation = std::move(*answer);
    // `wait` may return early, at worst at once, as Google documents.
    if (text_at(operation, "status") != "DONE" && web.now_ms() - now < 1000)
      if (!web.pause(kShortWait)) return no_answer(ApiFailure::Kind::canceled, "stopped");
  }
  ApiFailure error;
  // A failed operation has HTTP status 200 and an error inside.
  if (!error_of_operation(operation, error)) return {};
  error.message = tokens_.clean(std::move(error.message));
  return tl::make_unexpected(std::move(error));
}

}  // namespace lockstep::cloud::gcp
