// Decides and announces the pause before a restart.
#include "agent/restart_pause.h"

#include "base/log.h"

namespace lockstep::agent {

bool RestartPause::agreed(bool counted) {
  counted_ = counted;
  if (!counted_) return false;
  length_ = backoff_.pause(io::Clock::now());
  if (length_ == RestartBackoff::Duration::zero()) return false;
  log::warning(
      "waiting {} s before the restart: the last {} attempts lived less than {} s each "
      "(--restart-backoff)",
      std::chrono::duration<double>(length_).count(), backoff_.short_attempts(),
      RestartBackoff::kHealthy.count());
  return true;
}

}  // namespace lockstep::agent
