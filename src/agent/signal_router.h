// What the outside wants of the agent: signals, and the death of the guardian. Passes signals on to
// the workers, and hands requests to end the job to its listener.
#pragma once

#include "agent/signal_rules.h"
#include "agent/signal_source.h"
#include "agent/workers.h"
#include "base/error.h"
#include "io/loop.h"
#include "launch/launch_config.h"
#include "proc/containment.h"

#include <memory>

namespace lockstep::agent {

class SignalRouter {
 public:
  class Listener {
   public:
    // listed: the workers get the same signal (--signals-to-handle). Else its default action would
    // have ended the agent.
    virtual void on_stop(int signal, bool listed) = 0;
    // A second request.
    virtual void on_urgent(int signal) = 0;
    virtual void on_guardian_gone() = 0;

   protected:
    ~Listener() = default;
  };

  SignalRouter(io::Loop& loop, const launch::LaunchConfig& config, Workers& workers,
               Listener& listener);

  // Begins to watch. guardian: nullptr: the agent has none.
  Status open(const proc::Guardian* guardian);
  // Delivers the pending signals now.
  void poll() { source_->poll(); }

 private:
  void on_signal(int signal);
  void lose_guardian();

  io::Loop& loop_;
  Workers& workers_;
  Listener& listener_;
  SignalRules rules_;
  std::unique_ptr<SignalSource> source_;
  std::unique_ptr<io::Watch> guardian_;
};

}  // namespace lockstep::agent
