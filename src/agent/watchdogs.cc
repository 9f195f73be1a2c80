// Opens the watchdogs that the environment asks for.
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

void Watchdogs::close() {
  file_timer_.reset();
  stuck_watch_.reset();
}

Status Watchdogs::open_file_timer(Node& node) {
  const launch::WatchConfig& watch = node.config.watch;
  if (!watch.file_timer) return {};
  const std::string path = watch.timer_file.value_or("/tmp/watchdog_timer_" + random_uuid4());
  const auto on_expired = [this, name = node.name](const FileTimerTable::Expired& expired) {
    // Any process that can write to the FIFO may name any pid. Signal only our own descendants.
    if (const auto pid = containment_.find_descendant(expired.pid))
      listener_.on_timer_expired(*pid, expired.signal,
                                 fmt::format("the timer '{}' of process {} on {} expired",
                                             printable(expired.scope_id), expired.pid, name));
  };
  const auto is_ours = [this](pid_t pid) { return containment_.find_descendant(pid).has_value(); };
  LOCKSTEP_TRY_ASSIGN(file_timer_, FileTimer::open(loop_, path, on_expired, is_ours));
  node.environment[std::string(launch::kTimerFileVariable)] = path;
  return {};
}

void Watchdogs::open_stuck_watch(const Node& node) {
  const auto limit = node.config.watch.stuck_limit;
  if (!limit) return;
  stuck_watch_ = std::make_unique<StuckWatch>(
      loop_, std::chrono::duration_cast<io::Duration>(*limit), workers_,
      [this, name = node.name, seconds = limit->count()](pid_t pid) {
        listener_.on_stuck_worker(fmt::format(
            "process {} on {} has been stuck in the kernel for longer than {} s: it is {}", pid,
            name, seconds, what_holds("/proc", pid)));
      });
}

}  // namespace lockstep::agent
