// The policy of a dialer.
#include "io/dial_course.h"

#include "base/text.h"

#include <fmt/core.h>

#include <errno.h>

#include <algorithm>
#include <utility>

namespace lockstep::io {
namespace {

// A look-up or attempt cut off before this time says nothing about the name or address.
constexpr std::chrono::milliseconds kBrief(1000);

}  // namespace

DialCourse::DialCourse(DialRules rules, std::string host, TimePoint now)
    : rules_(rules),
      host_(std::move(host)),
      since_(now),
      until_(now + rules_.patience),
      pauses_({.first = rules_.first_pause, .longest = rules_.longest_pause, .percent = 150}) {}

Duration DialCourse::begin_round(TimePoint now) {
  addresses_.clear();
  next_ = 0;
  round_since_ = now;
  // An answer also protects the error of the next round: an address may answer now and refuse then.
  answered_before_ = std::exchange(answered_, false);
  return std::max(until_ - now, Duration(0));
}

DialCourse::Step DialCourse::found(std::vector<std::string> addresses, TimePoint now) {
  addresses_ = std::move(addresses);
  return next(now);
}

DialCourse::Step DialCourse::not_found(Error error, TimePoint now) {
  return failed(std::move(error), false, now);
}

DialCourse::Step DialCourse::look_up_expired(TimePoint now) {
  // An error of an earlier round says more than a look-up without enough time.
  if (error_ && now - round_since_ < kBrief) return failed(Error(*error_), false, now);
  return failed(
      {Errc::timeout, fmt::format("the look-up of '{}' does not end", printable(host_)), {}, 0},
      false, now);
}

DialCourse::Step DialCourse::failed(Error error, bool answered, TimePoint now) {
  if (next_ > 0) {
    const std::string& tried = addresses_[next_ - 1];
    if (tried != host_) error.message += fmt::format(" (tried {})", tried);
  }
  // A reset right after connecting means the same as a refusal: no server is ready there.
  const bool refused = error.sys == ECONNREFUSED || error.sys == ECONNRESET;
  // Any other error proves that refusals are not the whole story.
  if (!refused) refused_since_.reset();
  if (refused && !refused_since_) refused_since_ = now;
  answered_ = answered_ || answered;
  // An error of an earlier attempt says more than a last attempt without enough time.
  const bool hasty =
      error.code == Errc::timeout && allowed_ < kBrief && error_.has_value() && !rules_.once;
  // If some address answered, its error matters more than refusals of the name's other addresses.
  if (!hasty && (!refused || !(answered_ || answered_before_))) note(std::move(error));
  return next(now);
}

void DialCourse::note(Error error) {
  if (rules_.once && error_) {
    // With a single round, every address's error is reported: no later round will tell.
    error_->message += "; " + error.message;
  } else {
    error_ = std::move(error);
  }
}

DialCourse::Step DialCourse::next(TimePoint now) {
  if (next_ >= addresses_.size()) return pause_or_give_up(now);
  const auto rest = static_cast<Duration::rep>(addresses_.size() - next_);
  ++next_;
  const Duration left = std::max(until_ - now, Duration(0));
  // If there is only one round, an address without an answer must leave time for those after it.
  const Duration share = rules_.once ? left / rest : left;
  allowed_ = std::clamp(share, rules_.least_for_address, rules_.most_for_address);
  return {Step::What::connect, allowed_};
}

DialCourse::Step DialCourse::pause_or_give_up(TimePoint now) {
  const Step give_up{Step::What::give_up};
  if (rules_.once) return give_up;
  // A server that starts late refuses at first. Callers may set a shorter limit for refusals than
  // for silence, which points to a firewall or a host that boots.
  TimePoint end = until_;
  if (rules_.refused_patience && refused_since_)
    end = std::min(end, *refused_since_ + *rules_.refused_patience);
  const Duration left = end - now;
  const Duration spare = left - rules_.last_round.value_or(Duration(0));
  // These pauses are whole milliseconds. Timers round up, so fractions would add up.
  const Duration pause = pauses_.next();
  if (rules_.last_round ? spare <= Duration(0) : pause >= left) return give_up;
  return {Step::What::pause, std::min(pause, spare)};
}

}  // namespace lockstep::io
