// Decides the next step of a dialer: the addresses in turn, pauses between rounds, and the end of
// patience. Pure: the dialer reports events and their time. Knows no sockets.
#pragma once

#include "base/backoff.h"
#include "base/error.h"
#include "io/loop.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::io {

struct DialRules {
  Duration patience{};  // for all rounds together
  // true: a single round, in which the addresses share the time. Its error lists the errors of all
  // addresses. false: rounds repeat until patience ends, and the last error is reported.
  bool once = false;
  // Limits for the time of one address, which otherwise is the time left. The lower limit may let
  // the last attempt run beyond patience: a shorter attempt would blame the address for our haste.
  Duration least_for_address{};
  Duration most_for_address = Duration::max();
  // Pauses between rounds start here and grow by half each time.
  Backoff::Duration first_pause{};
  Backoff::Duration longest_pause{};
  // If the next pause does not fit, it is shortened to leave this much for a last round. nullopt:
  // give up as soon as a whole pause does not fit.
  std::optional<Duration> last_round;
  // Gives up early if all attempts in this time were refused: no server listens there.
  std::optional<Duration> refused_patience;
};

class DialCourse {
 public:
  struct Step {
    enum class What {
      connect,  // to address(), within `time`
      pause,    // for `time`, then begin_round()
      give_up,  // with error()
    };
    What what;
    Duration time{};
  };

  // `host` is the user's spelling. Errors name an address only if it differs.
  DialCourse(DialRules rules, std::string host, TimePoint now);

  // Starts a round: the name must be looked up next. Returns the time that the look-up may take.
  Duration begin_round(TimePoint now);
  // These report the result of a step and return the next one.
  Step found(std::vector<std::string> addresses, TimePoint now);
  Step not_found(Error error, TimePoint now);
  Step look_up_expired(TimePoint now);
  // The address failed. answered: it was reached, and its answer matters more than refusals of the
  // name's other addresses, in this round and the next.
  Step failed(Error error, bool answered, TimePoint now);

  std::size_t address() const { return next_ - 1; }
  // The most telling error so far.
  const std::optional<Error>& error() const { return error_; }
  TimePoint since() const { return since_; }
  TimePoint until() const { return until_; }

 private:
  Step next(TimePoint now);
  Step pause_or_give_up(TimePoint now);
  void note(Error error);

  DialRules rules_;
  std::string host_;
  TimePoint since_;
  TimePoint until_;
  TimePoint round_since_{};
  std::vector<std::string> addresses_;
  std::size_t next_ = 0;  // index after the current address
  Duration allowed_{};    // time for the current attempt
  Backoff pauses_;
  std::optional<TimePoint> refused_since_;
  bool answered_ = false;         // in this round
  bool answered_before_ = false;  // in the previous round
  std::optional<Error> error_;
};

}  // namespace lockstep::io
