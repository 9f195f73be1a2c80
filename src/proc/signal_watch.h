// The signals that Lockstep handles, which must be blocked, as events of the loop. Two are not
// told, which arrive because they are blocked: a hang-up that this process was started to ignore
// (nohup), and SIGPIPE, as whoever writes sees the error of the write.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"

#include <functional>
#include <memory>

namespace lockstep::proc {

class SignalWatch {
 public:
  // on_signal may destroy the watch.
  static Result<std::unique_ptr<SignalWatch>> open(io::Loop& loop,
                                                   std::function<void(int number)> on_signal);

  // How many signals that ask to end (INT, TERM, HUP, QUIT) the watches of this process have told,
  // for who acts after a watch has gone.
  static int stops();

 private:
  SignalWatch(io::Loop& loop, io::Fd fd, std::function<void(int)> on_signal);
  void read_one();

  io::Fd fd_;
  std::function<void(int)> on_signal_;
  io::Watch watch_;
};

}  // namespace lockstep::proc
