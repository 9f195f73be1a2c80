// Signals as events of the loop: reads the (already blocked) signals from a signalfd, drops twins
// and tells the owner one at a time.
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
  static Result<std::unique_ptr<SignalSource>> open(io::Loop& loop,
                                                    std::function<void(int)> on_signal);

  // Delivers what is pending now, without waiting.
  void poll();

 private:
  SignalSource(io::Loop& loop, io::Fd fd, std::function<void(int)> on_signal);

  io::Fd fd_;
  std::function<void(int)> on_signal_;
  SignalCounter counter_;
  io::Watch watch_;
};

}  // namespace lockstep::agent
