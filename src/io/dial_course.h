// Decides what a dialer does next, without sockets, names or a clock: the addresses in turn, pauses
// between rounds, and the end of patience. The dialer tells it what happened and when.
#pragma once

#include "base/error.h"
#include "io/loop.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::io {

struct DialRules {
  Duration patience{};  // for all rounds together
  // One round, in which the addresses share the time; its error names what each of them met.
  // Otherwise rounds go on until patience ends, and the last error stands for all.
  bool once = false;
  // How long one address may take: the time left, but within these limits. A lower limit means that
  // the last attempt may run beyond patience: its haste would be blamed on the address.
  Duration least_for_address{};
  Duration most_for_address = Duration::max();
  // Pauses between rounds begin with the first and grow by half.
  Duration first_pause{};
  Duration longest_pause{};
  // When the pause does not fit, it is shortened so that this much is left for a last round.
  // Without it the dialer gives up as soon as a whole pause does not fit.
  std::optional<Duration> last_round;
  // Gives up earlier when all attempts in this time were refused, because nobody listens there.
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

  // `host` as the user gave it: errors name an address only where that says more.
  DialCourse(DialRules rules, std::string host, TimePoint now);

  // The name is to be looked up next; returns how long that may take.
  Duration begin_round(TimePoint now);
  Step found(std::vector<std::string> addresses, TimePoint now);
  Step not_found(Error error, TimePoint now);
  Step look_up_expired(TimePoint now);
  // The address came to nothing. `answered`: it was reached, and what it said matters more than
  // that other addresses of the name refuse, in this round and the next.
  Step failed(Error error, bool answered, TimePoint now);

  std::size_t address() const { return next_ - 1; }
  // The error of the last attempt that says something.
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
  std::size_t next_ = 0;  // the address after the one under way
  Duration allowed_{};    // of the attempt under way
  Duration pause_;
  std::optional<TimePoint> refused_since_;
  bool answered_ = false;         // in this round
  bool answered_before_ = false;  // in the one before it
  std::optional<Error> error_;
};

}  // namespace lockstep::io
