// The meaning of each signal for a job. Pure.
#pragma once

#include "agent/signal_counter.h"

#include <vector>

namespace lockstep::agent {

class SignalRules {
 public:
  enum class Meaning {
    nothing,
    reap,     // reap ended children
    resize,   // resize the workers' terminals
    forward,  // forward to the workers
    stop,     // stop the job
    urgent,   // kill the workers at once: the second request
  };

  // listed: signals to end the job, forwarded unchanged to the workers (--signals-to-handle).
  // forwarded: signals for the workers only. A signal in both lists ends the job.
  SignalRules(std::vector<int> listed, std::vector<int> forwarded)
      : listed_(std::move(listed)), forwarded_(std::move(forwarded)) {}

  // Returns what to do about a signal. ignored: this process was started with the signal ignored,
  // as nohup does with HUP.
  Meaning meaning(int signal, bool ignored, StopRequests::TimePoint now);

  // Returns whether the signal is listed. The default action of an unlisted one would end the agent
  // and leave the workers behind.
  bool is_listed(int signal) const;

 private:
  std::vector<int> listed_;
  std::vector<int> forwarded_;
  StopRequests requests_;
};

}  // namespace lockstep::agent
