// Tells the user which hosts a command waits for, for how long, and how to stop the command.
#pragma once

#include "io/loop.h"

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::hosts {

// Ends a step of Waiting if a single Ctrl-C ends the command.
inline constexpr const char* kCtrlCEnds = "; Ctrl-C ends this command";

// Logs lines after 5 s and then less and less often, until the notice is cancelled or destroyed.
// Logs nothing while ssh asks for a password or passphrase on the terminal.
class WaitNotice {
 public:
  // The awaited hosts by name, each with the current step. Empty: nothing is logged.
  using Waiting = std::vector<std::pair<std::string, std::string>>;

  // who: called before each notice. Must not destroy the notice.
  WaitNotice(io::Loop& loop, std::function<Waiting()> who);
  void start();
  void cancel() { timer_.cancel(); }

 private:
  void tell();

  std::function<Waiting()> who_;
  std::chrono::seconds waited_{0};  // from start() to the last notice
  io::Timer timer_;
};

}  // namespace lockstep::hosts
