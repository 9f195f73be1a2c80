#include "cloud/gcp/token.h"

#include "base/log.h"
#include "base/text.h"
#include "cloud/gcp/api_error.h"
#include "cloud/gcp/values.h"
#include "cloud/json_words.h"
#include "codec/jwt.h"
#include "codec/url.h"
#include "http/date.h"
#include "proc/tool_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace lockstep::cloud::gcp {
namespace {

constexpr std::string_view kScope = "https://www.googleapis.com/auth/cloud-platform";
constexpr std::string_view kJwtGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
// Renew five minutes early, so that a token does not expire between two calls.
constexpr std::int64_t kEarly = 5LL * 60'000;
constexpr std::chrono::milliseconds kLongestWait = std::chrono::minutes(5);
constexpr std::int64_t kFailureStands = 1'000;
constexpr std::int64_t kOfGcloud = 10LL * 60'000;  // gcloud does not tell how long a token is valid
constexpr std::int64_t kSkewThatMatters = 60'000;
constexpr std::size_t kTokenLimit = 8UL << 10;

// Returns whether a token is safe in an HTTP header field.
bool is_token_text(std::string_view token) {
  if (token.empty() || token.size() > kTokenLimit) return false;
  for (const char c : token)
    if (c <= ' ' || c >= '\x7f') return false;
  return true;
}

constexpr std::chrono::milliseconds kGcloudPatience{30'000};

Result<std::string> token_of_gcloud(std::chrono::milliseconds time) {
  const auto said =
      proc::tool_output({"gcloud", "auth", "print-access-token"}, proc::own_environment(),
                        {.patience = std::min(time, kGcloudPatience), .output = 64UL << 10});
  if (!said) return Failure(said.error());
  std::string token(strip(said->out));
  if (!is_token_text(token))
    return fail(Errc::denied,
                fmt::format("gcloud auth print-access-token: {}",
                            printable(strip(said->err.empty() ? "it gave no token" : said->err))),
                "run: gcloud auth login");
  return token;
}

}  // namespace

Result<std::string> Tokens::ask_body(std::int64_t now_ms) const {
  using Pairs = std::array<std::pair<std::string, std::string>, 4>;
  if (credentials_.kind == Credentials::Kind::authorized_user)
    return codec::form_text(Pairs{{{"grant_type", "refresh_token"},
                                   {"client_id", credentials_.client_id},
                                   {"client_secret", credentials_.client_secret},
                                   {"refresh_token", credentials_.refresh_token}}});
  const std::int64_t now = (now_ms + skew_ms_) / 1000;
  const std::string claims = fmt::format(R"({{"iss":{},"scope":"{}","aud":{},"iat":{},"exp":{}}})",
                                         json_text(credentials_.email), kScope,
                                         json_text(credentials_.token_uri), now, now + 3600);
  LOCKSTEP_TRY_ASSIGN(std::string signed_claims,
                      codec::sign_jwt(credentials_.private_key, credentials_.key_id, claims));
  const Pairs pairs{{{"grant_type", std::string(kJwtGrant)}, {"assertion", signed_claims}}};
  return codec::form_text(std::span(pairs).first(2));
}

Status Tokens::renew(Web& web) {
  if (credentials_.kind == Credentials::Kind::gcloud) {
    LOCKSTEP_TRY_ASSIGN(token_, token_of_gcloud(web.time_left()));
    until_ms_ = web.now_ms() + kOfGcloud;
    return {};
  }
  LOCKSTEP_TRY_ASSIGN(
      const codec::Url url,
      codec::parse_url(credentials_.token_uri, fmt::format("token_uri of {}", credentials_.where)));
  for (bool again = true;; again = false) {
    LOCKSTEP_TRY_ASSIGN(std::string body, ask_body(web.now_ms()));
    const Reply reply = web.ask(
        {.base = (url.tls ? "https://" : "http://") + codec::host_text(url.host, url.port, url.tls),
         .target = url.target,
         .fields = {{"content-type", "application/x-www-form-urlencoded"}},
         .body = std::move(body),
         .body_limit = 1U << 20,
         .repeatable = true,
         .shown = "Google Compute: access token"});
    if (!reply.answer) return Failure(reply.answer.error());
    if (reply.answer->head.status == 200) {
      const nlohmann::json answer = codec::parse_json(reply.answer->body);
      std::string token = text_at(answer, "access_token");
      const std::int64_t seconds = number_at(answer, "expires_in");
      if (!is_token_text(token) || seconds <= 0)
        return fail(Errc::corrupt, "the answer of Google's token endpoint has no token");
      token_ = std::move(token);
      until_ms_ = web.now_ms() + std::min<std::int64_t>(seconds, 12LL * 3600) * 1000;
      return {};
    }
    const ApiFailure error = error_of_answer(reply.answer->head.status, reply.answer->body);
    const auto theirs = http::parse_http_date(reply.answer->head.field("date"));
    const std::int64_t skew = theirs ? *theirs * 1000 - web.now_ms() : 0;
    // Google refuses a token request whose times are minutes off. Retry with Google's own clock.
    if (again && std::abs(skew) > kSkewThatMatters && std::abs(skew - skew_ms_) > 1000) {
      skew_ms_ = skew;
      log::warning("this machine's clock is off by {} s by Google's: set it", skew / 1000);
      continue;
    }
    const bool passing = error.status == 429 || error.status >= 500;
    return fail(passing ? Errc::unavailable : Errc::denied,
                fmt::format("no access token for the keys in {}: {} ({})", credentials_.where,
                            error.message, error.code));
  }
}

Result<std::string> Tokens::get(Web& web) {
  // A thread that renews the token holds the lock, and may have more time. Wait no longer than the
  // caller may.
  const std::unique_lock lock(mutex_, std::min(web.time_left(), kLongestWait));
  if (!lock) return fail(Errc::timeout, "no access token in the time that there was");
  const auto holds_for = [&](std::int64_t ms) {
    return !token_.empty() && web.now_ms() + ms < until_ms_;
  };
  if (holds_for(kEarly)) return token_;
  // After a failed renewal, waiting threads share the failure for a second.
  if (web.now_ms() >= failed_until_ms_) {
    const Status renewed = renew(web);
    if (renewed) return token_;
    failure_ = renewed.error();
    // The user stopped this Web. Remember no failure: the Web that terminates machines still needs
    // a token.
    if (failure_.code == Errc::canceled) return Failure(failure_);
    failed_until_ms_ = web.now_ms() + (failure_.code == Errc::timeout ? 0 : kFailureStands);
  }
  // The old token can still terminate machines in its last minutes.
  if (holds_for(0)) return token_;
  return Failure(failure_);
}

void Tokens::refused(std::string_view token) {
  const std::lock_guard lock(mutex_);
  if (token_ == token) token_.clear();
}

std::string Tokens::clean(std::string text) const {
  const std::lock_guard lock(mutex_);
  for (const std::string* secret :
       {&token_, &credentials_.client_secret, &credentials_.refresh_token})
    if (!secret->empty()) replace_all(text, *secret, "***");
  return text;
}

}  // namespace lockstep::cloud::gcp
