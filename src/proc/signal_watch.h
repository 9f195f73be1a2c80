// The signals that Lockstep handles, as events of the loop. The signals must be blocked. Two of
// them are not reported: SIGHUP if this process was started to ignore it (nohup), and SIGPIPE,
// since the failing write reports the error.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"

#include <functional>
#include <memory>

namespace lockstep::proc {

class SignalWatch {
 public:
  // `on_signal` may destroy the watch. Fails if no descriptor is left.
  static Result<std::unique_ptr<SignalWatch>> open(io::Loop& loop,
                                                   std::function<void(int number)> on_signal);

  // Returns a signal that asks to end (INT, TERM, HUP, QUIT) and that a watch of this process has
  // reported since this function returned it last; 0: none. For code that runs after a watch was
  // destroyed.
  static int take_stop();

 private:
  SignalWatch(io::Loop& loop, io::Fd fd, std::function<void(int)> on_signal);
  void read_one();

  io::Fd fd_;
  std::function<void(int)> on_signal_;
  io::Watch watch_;
};

}  // namespace lockstep::proc
