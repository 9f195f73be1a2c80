// Waits for a child of the runtime's and tells the signals that come meanwhile.
#pragma once

#include "proc/signals.h"
#include "proc/spawn.h"

#include <signal.h>

#include <functional>

namespace lockstep::container {

// Returns how the child ended. proc::handled_signals() must be blocked. A SIGHUP that this process
// was started to ignore is not told.
inline proc::Exit attend(proc::Child& child, const std::function<void(int signal)>& on_signal) {
  const sigset_t signals = proc::handled_signals();
  const bool no_hangup = proc::is_ignored(SIGHUP);
  while (true) {
    if (const auto exit = child.reap()) return *exit;
    const int signal = sigwaitinfo(&signals, nullptr);
    if (signal <= 0 || signal == SIGCHLD || signal == SIGPIPE) continue;
    if (signal == SIGHUP && no_hangup) continue;
    on_signal(signal);
  }
}

}  // namespace lockstep::container
