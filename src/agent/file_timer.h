// The watchdog's fifo (TORCHELASTIC_ENABLE_FILE_TIMER): workers write one JSON line per request,
//   {"version": 1, "pid": 7, "scope_id": "s", "expiration_time": 1790000000.5, "signal": 9}
// and a negative expiration_time releases (pid, scope_id). Pure: fed with bytes and the time.
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

  // Bytes in any pieces. Lines that are no request are ignored.
  void feed(std::string_view bytes);

  // For each pid with a timer due at `now` (seconds since the epoch): its earliest due timer that
  // has a signal. All timers of such pids are dropped, those without any signal too, as
  // torchelastic does.
  std::vector<Expired> take_expired(double now);

  // Processes with timers, for the caller to forget those that ended.
  std::vector<pid_t> pids() const;
  void forget(pid_t pid);

  // Once, after the first line that was ignored: what it was.
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
