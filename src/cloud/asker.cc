#include "cloud/asker.h"

#include "base/id.h"
#include "base/text.h"
#include "cloud/pace.h"

#include <algorithm>
#include <utility>

namespace lockstep::cloud {
namespace {

using std::chrono::milliseconds;

// Cap a Retry-After of days: a user is waiting.
constexpr std::int64_t kMostRetryAfter = 3600;  // seconds
// Mend once for the clock and once for credentials. A service that refuses corrected credentials
// refuses for good.
constexpr int kMostMends = 2;

bool is_success(int status) {
  return status >= 200 && status < 300;
}

Asked<std::string> ask_once(Web& web, ApiTry& call) {
  for (int mends = 0;; ++mends) {
    // Make the question anew for each try: a signature contains the time, and a token may have been
    // renewed.
    auto question = call.question(web);
    if (!question) return tl::make_unexpected(std::move(question).error());
    Reply reply = web.ask(*question);
    if (!reply.answer) {
      ApiFailure failure = without_answer(reply.answer.error(), reply.sent);
      if (!failure.message.starts_with(question->shown))
        failure.message = question->shown + ": " + failure.message;
      return tl::make_unexpected(std::move(failure));
    }
    if (is_success(reply.answer->head.status)) return std::move(reply.answer->body);
    ApiFailure failure = call.refusal(*reply.answer);
    failure.status = reply.answer->head.status;
    if (failure.retry_after.empty()) failure.retry_after = reply.answer->head.field("retry-after");
    if (mends == kMostMends || !call.mends(web, *reply.answer, failure))
      return tl::make_unexpected(std::move(failure));
  }
}

}  // namespace

ApiFailure::ApiFailure() = default;
ApiFailure::ApiFailure(ApiFailure&& other) noexcept = default;
ApiFailure::ApiFailure(const ApiFailure& other) = default;
ApiFailure& ApiFailure::operator=(ApiFailure&& other) noexcept = default;
ApiFailure& ApiFailure::operator=(const ApiFailure& other) = default;
ApiFailure::~ApiFailure() = default;

ApiFailure without_answer(const Error& error, bool sent) {
  ApiFailure failure;
  failure.kind = error.code == Errc::canceled ? ApiFailure::Kind::canceled
                 : sent                       ? ApiFailure::Kind::unanswered
                                              : ApiFailure::Kind::unsent;
  failure.errc = error.code;
  failure.message = failure.said = error.message;
  failure.hint = error.hint;
  // A broken connection or a cut answer may be better at the next try.
  failure.lasting = error.code != Errc::unavailable && error.code != Errc::corrupt;
  failure.maybe_done = sent;
  return failure;
}

ApiFailure unreadable(std::string message) {
  return without_answer({.code = Errc::corrupt, .message = std::move(message), .hint = {}}, true);
}

ApiFailure refusal_with(int status, std::string code, std::string message) {
  ApiFailure failure;
  failure.status = status;
  failure.code = std::move(code);
  failure.message = std::move(message);
  return failure;
}

std::optional<milliseconds> Retry::pause_of(Budget& budget, milliseconds patience,
                                            std::string_view retry_after, std::int64_t now_ms,
                                            std::uint8_t chance) const {
  milliseconds pause = budget.backoff.next(chance);
  if (const auto said = parse_int(retry_after); said && *said >= 0)
    pause = milliseconds(std::min(*said, kMostRetryAfter) * 1000);
  budget.paused += pause;
  // Count pauses as well as time: a clock may stand still or be set back.
  if (std::max(milliseconds(now_ms - began_ms_) + pause, budget.paused) > patience)
    return std::nullopt;
  return paced(pause, rule_.pace);
}

std::optional<milliseconds> Retry::next(ApiFailure& failure, std::int64_t now_ms,
                                        std::uint8_t chance) {
  // A server may fail (5xx) after carrying out the call.
  const bool failed = failure.refused() && failure.passing && failure.status >= 500;
  maybe_done_ = maybe_done_ || failure.maybe_done || failed;
  failure.maybe_done = maybe_done_;
  if (failure.refused()) {
    if (!failure.passing || (failed && rule_.repeat == Repeat::if_not_done)) return std::nullopt;
    return pause_of(passing_, rule_.patience, failure.retry_after, now_ms, chance);
  }
  // Never wait for a deadline twice.
  if (!failure.silent() || failure.lasting) return std::nullopt;
  if (failure.kind == ApiFailure::Kind::unanswered && rule_.repeat != Repeat::always)
    return std::nullopt;
  return pause_of(silent_, rule_.absence, "", now_ms, chance);
}

Asked<std::string> ask_api(Web& web, ApiTry& call, const RetryRule& rule) {
  Retry retry(web.now_ms(), rule);
  while (true) {
    auto body = ask_once(web, call);
    if (body) return body;
    ApiFailure& failure = body.error();
    // Random pauses keep many clients from retrying at the same moment.
    const auto chance = static_cast<std::uint8_t>(random_key(1)[0]);
    // Only Retry decides about a second try. A provider's folder says what a failure means, but
    // never repeats a call itself.
    const auto pause = retry.next(failure, web.now_ms(), chance);
    if (!pause) return body;
    if (failure.refused()) call.pauses(web, failure, *pause);
    if (const Status paused = web.pause(*pause); !paused) {
      ApiFailure stopped = without_answer(paused.error(), false);
      stopped.maybe_done = failure.maybe_done;
      return tl::make_unexpected(std::move(stopped));
    }
  }
}

}  // namespace lockstep::cloud
