// The watchdogs of this node, as the environment asks for them (watchdog.h): the file timer, in
// which workers arm timers for themselves, and the watch for workers stuck in the kernel.
#pragma once

#include "agent/node.h"
#include "agent/watchdog.h"
#include "base/error.h"
#include "io/loop.h"
#include "proc/containment.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::agent {

class Watchdogs {
 public:
  class Listener {
   public:
    // pid: a living descendant of ours, which must get the signal. why: a text of one line.
    virtual void on_timer_expired(pid_t pid, int signal, const std::string& why) = 0;
    virtual void on_stuck_worker(const std::string& why) = 0;

   protected:
    ~Listener() = default;
  };

  // workers: called at each look for the pids to look at.
  Watchdogs(io::Loop& loop, const proc::Containment& containment,
            std::function<std::vector<pid_t>()> workers, Listener& listener)
      : loop_(loop), containment_(containment), workers_(std::move(workers)), listener_(listener) {}

  // Opens the watchdogs. Adds the path of the file timer to the environment that workers inherit.
  Status open(Node& node);
  void close();  // also removes the FIFO

 private:
  Status open_file_timer(Node& node);
  void open_stuck_watch(const Node& node);

  io::Loop& loop_;
  const proc::Containment& containment_;
  std::function<std::vector<pid_t>()> workers_;
  Listener& listener_;
  std::unique_ptr<FileTimer> file_timer_;
  std::unique_ptr<StuckWatch> stuck_watch_;
};

}  // namespace lockstep::agent
