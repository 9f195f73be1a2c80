// The table of signals and their meaning.
#include "agent/signal_rules.h"

#include <signal.h>

#include <algorithm>

namespace lockstep::agent {
namespace {

bool holds(const std::vector<int>& list, int signal) {
  return std::find(list.begin(), list.end(), signal) != list.end();
}

}  // namespace

SignalRules::Meaning SignalRules::meaning(int signal, bool ignored, StopRequests::TimePoint now) {
  switch (signal) {
    case SIGCHLD:
      return Meaning::reap;
    case SIGWINCH:
      return Meaning::resize;
    case SIGPIPE:
    case SIGURG:
    case SIGXFSZ:  // the code writing an oversized file reports the error
      return Meaning::nothing;
    case SIGHUP:
      if (ignored) return Meaning::nothing;
      break;
    default:
      break;
  }
  // A listed signal ends the job even if the default is to forward the signal (USR1, USR2).
  if (!is_listed(signal) && holds(forwarded_, signal)) return Meaning::forward;
  // Only TERM and INT escalate. A repeated HUP or QUIT is not a demand to kill at once.
  if (signal != SIGTERM && signal != SIGINT) return Meaning::stop;
  switch (requests_.on_request(now)) {
    case StopRequests::Meaning::stop:
      return Meaning::stop;
    case StopRequests::Meaning::same:
      return Meaning::nothing;
    case StopRequests::Meaning::urgent:
      return Meaning::urgent;
  }
  return Meaning::stop;
}

bool SignalRules::is_listed(int signal) const {
  return holds(listed_, signal);
}

}  // namespace lockstep::agent
