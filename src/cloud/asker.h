// Asks the HTTP API of a provider, with a common kind of failure and a common rule for retries. The
// provider's folder adds credentials to its calls and reads its errors.
#pragma once

#include "base/backoff.h"
#include "base/error.h"
#include "cloud/web.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud {

// The reason why a call has no usable answer.
struct ApiFailure {
  enum class Kind {
    refused,     // the service refused
    unsent,      // no byte has reached the service
    unanswered,  // no readable answer: the service may have carried out the call
    no_keys,     // no credentials to ask with
    canceled,    // the user asked to stop
  };

  Kind kind = Kind::refused;
  int status = 0;                       // HTTP's; 0: no answer
  Errc errc = Errc::unavailable;        // of error()
  std::string code = {};                // the service's own; "": none
  std::string message = {};             // one printable line for people, without secrets
  std::string said = {};                // the service's own words, printable, without secrets
  std::string hint = {};                // what to do; may be empty
  std::string retry_after = {};         // the header field of that name
  std::vector<std::string> zones = {};  // zones with capacity, named by the service
  bool passing = false;                 // refused now, but the same call may succeed later
  bool lasting = false;  // no answer, and the next try has none either: a deadline, a bad address
  bool maybe_done =
      false;  // this try, or an earlier try of the same call, may have been carried out

  // Out of line, since a hundred places pass failures on.
  ApiFailure();
  ApiFailure(ApiFailure&& other) noexcept;
  ApiFailure(const ApiFailure& other);
  ApiFailure& operator=(ApiFailure&& other) noexcept;
  ApiFailure& operator=(const ApiFailure& other);
  ~ApiFailure();

  bool refused() const { return kind == Kind::refused; }
  // Returns whether the service was silent. Nothing is then known of credentials and rights.
  bool silent() const { return kind == Kind::unsent || kind == Kind::unanswered; }
  Error error() const { return {.code = errc, .message = message, .hint = hint}; }
};

template <class T>
using Asked = tl::expected<T, ApiFailure>;

// Makes the failure of an unanswered call. sent: the service may have understood the call.
ApiFailure without_answer(const Error& error, bool sent);
// Makes the failure for an unreadable answer of success: the service may have carried out the call.
ApiFailure unreadable(std::string message);
// Makes a refusal by the service. status 0: refused by us, before the service is asked.
ApiFailure refusal_with(int status, std::string code, std::string message);

// Tells after which failures a call is repeated. Each value includes the values before it.
enum class Repeat {
  if_not_done,    // nothing can have happened: the call was not sent, or came too early (429)
  after_failure,  // the service failed (5xx); the call carries an idempotency token
  always,         // no answer came, and a repeat does no harm
};

struct RetryRule {
  Repeat repeat = Repeat::if_not_done;
  std::chrono::milliseconds patience{0};  // with refusals that pass: all tries and pauses
  std::chrono::milliseconds absence{0};   // with a service that gives no answer
  double pace = 1;                        // shortens pauses (pace_of())
};

// The state of a call and its retries. Pure.
class Retry {
 public:
  Retry(std::int64_t now_ms, const RetryRule& rule) : rule_(rule), began_ms_(now_ms) {}

  // Returns the pause after a failed try. nullopt: `failure` is final, and its maybe_done covers
  // all tries. The service's Retry-After wins over our own pauses. chance: a random byte
  // (Backoff::next).
  std::optional<std::chrono::milliseconds> next(ApiFailure& failure, std::int64_t now_ms,
                                                std::uint8_t chance);

 private:
  // The pauses for a cause. Their sum is bounded by the patience for that cause.
  struct Budget {
    Backoff backoff{
        {.first = std::chrono::milliseconds(500), .longest = std::chrono::milliseconds(20'000)}};
    std::chrono::milliseconds paused{0};  // without the pace
  };
  std::optional<std::chrono::milliseconds> pause_of(Budget& budget,
                                                    std::chrono::milliseconds patience,
                                                    std::string_view retry_after,
                                                    std::int64_t now_ms, std::uint8_t chance) const;

  RetryRule rule_;
  std::int64_t began_ms_;
  Budget passing_ = {};
  Budget silent_ = {};
  bool maybe_done_ = false;
};

// A call. The provider's folder builds the question and reads the answers.
class ApiTry {
 public:
  virtual ~ApiTry() = default;

  // Returns the call with the present address and credentials. Called for each try.
  virtual Asked<Question> question(Web& web) = 0;
  // Reads an answer that reports a failure. The asker fills in status and retry_after.
  virtual ApiFailure refusal(const http::Answer& answer) = 0;
  // Returns whether wrong credentials or a wrong clock caused the failure and are now corrected.
  // The call is then repeated at once.
  virtual bool mends(Web& /*web*/, const http::Answer& /*answer*/, const ApiFailure& /*failure*/) {
    return false;
  }
  // Called before the pause that follows a refusal.
  virtual void pauses(Web& /*web*/, const ApiFailure& /*failure*/,
                      std::chrono::milliseconds /*pause*/) {}
};

// Makes the call until it succeeds or the rule ends the tries. Returns the body.
Asked<std::string> ask_api(Web& web, ApiTry& call, const RetryRule& rule);

}  // namespace lockstep::cloud
