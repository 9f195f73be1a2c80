// The watchdog's FIFO (TORCHELASTIC_ENABLE_FILE_TIMER). Workers write one JSON line per request:
//   {"version": 1, "pid": 7, "scope_id": "s", "expiration_time": 1790000000.5, "signal": 9}
// A negative expiration_time releases the timer (pid, scope_id). Pure: the driver feeds bytes and
// time.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::agent {

class FileTimerTable {
 public:
  static constexpr std::size_t kLineLimit = 4096;       // PIPE_BUF: longer writes are not atomic
  static constexpr std::size_t kTimerLimit = 1U << 13;  // timers kept at once

  struct Expired {
    pid_t pid = 0;
    std::string scope_id;
    double expiration_time = 0;
    int signal = 0;  // > 0
  };

  // Takes bytes in pieces of any size. Lines that are not requests are ignored.
  void feed(std::string_view bytes);

  // Returns, for each pid with a timer due at `now` (unix time in seconds), its earliest due timer
  // that has a signal. Removes all timers of these pids, also of pids whose due timers have no
  // signal: torchelastic does the same.
  std::vector<Expired> take_expired(double now);

  // Returns the processes with timers. The caller calls forget() for dead ones.
  std::vector<pid_t> pids() const;
  void forget(pid_t pid);

  // Returns a description of the first ignored line, once. nullopt afterwards.
  std::optional<std::string> take_warning();

 private:
  struct Timer {
    double expiration_time = 0;
    int signal = 0;
  };

  void line(std::string_view text);
  void ignore(std::string_view text, std::string_view why);

  std::string partial_;
  bool skipping_ = false;  // inside a line that was too long
  bool warned_ = false;
  std::optional<std::string> warning_;
  std::map<std::pair<pid_t, std::string>, Timer> timers_;
};

}  // namespace lockstep::agent
