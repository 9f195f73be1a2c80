// Starts an ssh master for a target if none runs. Several clients asking at once start only one.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/fd.h"
#include "io/file_lock.h"
#include "io/loop.h"
#include "link/stream_ends.h"
#include "proc/spawn.h"
#include "ssh/ssh_command.h"
#include "ssh/target.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::ssh {

class Master {
 public:
  // Calls `done` once, never from inside the constructor. Blocks the loop briefly in find_trusts().
  Master(io::Loop& loop, Target target, MasterSettings settings, std::function<void(Status)> done);
  Master(const Master&) = delete;
  Master& operator=(const Master&) = delete;

 private:
  void take_turn();
  Status start(std::vector<std::string> argv);
  void on_end();
  void on_failure();
  void finish(Status status);

  io::Loop& loop_;
  Target target_;
  MasterSettings settings_;
  std::function<void(Status)> done_;
  io::FileLock lock_;  // held while ssh logs in
  io::Timer retry_;
  io::Timer slow_;
  io::Fd said_fd_;
  std::string said_;      // ssh's stderr
  bool probing_ = false;  // the log-in failed behind a jump host, and a second ssh finds out why
  std::unique_ptr<link::Source> said_source_;
  std::optional<proc::Child> child_;
  std::unique_ptr<io::Watch> end_watch_;
};

// Sets this process's function for slow logins, called once per login after 1.5 s. It runs on the
// login's loop and must return soon.
using SlowLogin = void (*)(const Target& target, const std::string& pins);
void tell_slow_logins(SlowLogin told);

// Returns true if a master listens at the socket.
bool listens(const std::string& socket);

}  // namespace lockstep::ssh
