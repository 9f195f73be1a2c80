// Two watchdogs that are off unless the environment asks for them: the file timer
// (TORCHELASTIC_ENABLE_FILE_TIMER) and the limit of uninterruptible sleep
// (TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT, seconds).
#pragma once

#include "agent/d_state.h"
#include "agent/file_timer.h"
#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::agent {

// Owns the FIFO of timer requests. The destructor removes the file.
class FileTimer {
 public:
  using OnExpired = std::function<void(const FileTimerTable::Expired&)>;
  // Returns whether a pid, as the worker sees it, is a living descendant of ours. Timers of other
  // processes are dropped.
  using IsOurs = std::function<bool(pid_t)>;
  // Makes the FIFO at `path`, replacing one of an earlier run. Fails if the FIFO cannot be made or
  // another user replaced it.
  static Result<std::unique_ptr<FileTimer>> open(io::Loop& loop, std::string path,
                                                 OnExpired on_expired, IsOurs ours);
  ~FileTimer();
  const std::string& path() const { return path_; }

 private:
  FileTimer(io::Loop& loop, std::string path, io::Fd fd, OnExpired on_expired, IsOurs ours);
  void on_readable();
  void check();

  std::string path_;
  io::Fd fd_;
  OnExpired on_expired_;
  IsOurs ours_;
  FileTimerTable table_;
  io::Watch watch_;
  io::Timer timer_;
};

// Reports processes that stay in state D for `limit`.
class StuckWatch {
 public:
  // pids: called at each look for the processes to look at.
  StuckWatch(io::Loop& loop, io::Duration limit, std::function<std::vector<pid_t>()> pids,
             std::function<void(pid_t)> on_stuck);

 private:
  void check();

  DStateTracker tracker_;
  io::Duration period_;
  std::function<std::vector<pid_t>()> pids_;
  std::function<void(pid_t)> on_stuck_;
  io::Timer timer_;
};

}  // namespace lockstep::agent
