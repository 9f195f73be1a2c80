// Signals as events of the loop. Reads the signals, which must already be blocked, from a signalfd,
// removes duplicates and reports one at a time to the owner.
#pragma once

#include "agent/signal_counter.h"
#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"

#include <functional>
#include <memory>

namespace lockstep::agent {

class SignalSource {
 public:
  // Fails if the process has no descriptor left. `on_signal` is called from the loop and from
  // poll().
  static Result<std::unique_ptr<SignalSource>> open(io::Loop& loop,
                                                    std::function<void(int)> on_signal);

  // Delivers the pending signals now, without waiting.
  void poll();

 private:
  SignalSource(io::Loop& loop, io::Fd fd, std::function<void(int)> on_signal);

  io::Fd fd_;
  std::function<void(int)> on_signal_;
  SignalCounter counter_;
  io::Watch watch_;
};

}  // namespace lockstep::agent
