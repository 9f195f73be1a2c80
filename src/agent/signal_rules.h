// What each signal means for a job. Pure.
#pragma once

#include "agent/signal_counter.h"

#include <vector>

namespace lockstep::agent {

class SignalRules {
 public:
  enum class Meaning {
    nothing,
    reap,     // a child has ended
    resize,   // of the terminal
    forward,  // to the workers
    stop,     // the job
    urgent,   // at once: it is the second time
  };

  // listed: end the job, and are passed on to the workers as they are. forwarded: reach the workers
  // without ending the job, unless they are listed too.
  SignalRules(std::vector<int> listed, std::vector<int> forwarded)
      : listed_(std::move(listed)), forwarded_(std::move(forwarded)) {}

  // ignored: this process was started with the signal ignored, as nohup does with HUP.
  Meaning meaning(int signal, bool ignored, StopRequests::TimePoint now);

  // False: its default action would be to end the agent and leave the workers behind.
  bool is_listed(int signal) const;

 private:
  std::vector<int> listed_;
  std::vector<int> forwarded_;
  StopRequests requests_;
};

}  // namespace lockstep::agent
