#include "agent/watchdogs.h"

#include "base/id.h"
#include "base/text.h"

#include <fmt/core.h>

#include <chrono>

namespace lockstep::agent {

Status Watchdogs::open(Node& node) {
  LOCKSTEP_TRY(open_file_timer(node));
  open_stuck_watch(node);
  return {};
}

Status Watchdogs::open_file_timer(Node& node) {
  const auto enabled = node.environment.find("TORCHELASTIC_ENABLE_FILE_TIMER");
  if (enabled == node.environment.end() || enabled->second != "1") return {};
  const auto given = node.environment.find("TORCHELASTIC_TIMER_FILE");
  const std::string path = given != node.environment.end() && !given->second.empty()
                               ? given->second
                               : "/tmp/watchdog_timer_" + random_uuid4();
  const auto on_expired = [this, name = node.name](const FileTimerTable::Expired& expired) {
    // Only a process of ours: whoever wrote that can't make us kill a stranger.
    if (const auto pid = containment_.find_descendant(expired.pid))
      listener_.on_timer_expired(*pid, expired.signal,
                                 fmt::format("the timer '{}' of process {} on {} expired",
                                             printable(expired.scope_id), expired.pid, name));
  };
  const auto is_ours = [this](pid_t pid) { return containment_.find_descendant(pid).has_value(); };
  LOCKSTEP_TRY_ASSIGN(file_timer_, FileTimer::open(loop_, path, on_expired, is_ours));
  node.environment["TORCHELASTIC_TIMER_FILE"] = path;
  return {};
}

void Watchdogs::open_stuck_watch(const Node& node) {
  const auto given = node.environment.find("TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT");
  if (given == node.environment.end()) return;
  const auto seconds = parse_float(given->second);
  if (!seconds || *seconds <= 0) return;
  stuck_watch_ = std::make_unique<StuckWatch>(
      loop_, std::chrono::duration_cast<io::Duration>(std::chrono::duration<double>(*seconds)),
      workers_, [this, name = node.name, limit = given->second](pid_t pid) {
        listener_.on_stuck_worker(fmt::format(
            "process {} on {} has been stuck in the kernel for longer than {} s: it is {}", pid,
            name, limit, what_holds("/proc", pid)));
      });
}

}  // namespace lockstep::agent
