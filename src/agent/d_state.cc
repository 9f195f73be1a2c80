// Process states from /proc.
#include "agent/d_state.h"

#include "base/text.h"
#include "io/fd.h"

#include <fmt/core.h>

namespace lockstep::agent {

std::optional<char> parse_stat_state(std::string_view stat) {
  // The command in parentheses may contain blanks and parentheses itself: only the last ')' ends
  // the field.
  const std::size_t end = stat.rfind(')');
  if (end == std::string_view::npos || end + 2 >= stat.size() || stat[end + 1] != ' ')
    return std::nullopt;
  return stat[end + 2];
}

std::optional<char> process_state(const std::string& proc, pid_t pid) {
  const auto stat = io::read_file(fmt::format("{}/{}/stat", proc, pid), 4096);
  return stat ? parse_stat_state(*stat) : std::nullopt;
}

std::string what_holds(const std::string& proc, pid_t pid) {
  const auto text = io::read_file(fmt::format("{}/{}/wchan", proc, pid), 256);
  const std::string_view function = text ? strip(*text) : std::string_view();
  // The kernel prints "0" where wchan is hidden or the process runs.
  if (!function.empty() && function != "0") return fmt::format("waiting in {}", function);
  const auto state = process_state(proc, pid);
  if (!state) return "gone meanwhile";
  if (state == 'D') return "in an uninterruptible system call that the kernel does not name";
  return fmt::format("in state {}", *state);
}

bool DStateTracker::observe(pid_t pid, std::optional<char> state, io::TimePoint now) {
  if (state != 'D') {
    since_.erase(pid);
    return false;
  }
  const auto [at, first] = since_.try_emplace(pid, now);
  return now - at->second >= limit_;
}

}  // namespace lockstep::agent
