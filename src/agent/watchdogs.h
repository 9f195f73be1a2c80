// The watchdogs of this node, as the environment asks for them (watchdog.h): the file timer, in
// which workers arm timers for themselves, and the watch for workers that are stuck in the kernel.
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
    // pid: a living descendant of ours, which is to get the signal. why: one line.
    virtual void on_timer_expired(pid_t pid, int signal, const std::string& why) = 0;
    virtual void on_stuck_worker(const std::string& why) = 0;

   protected:
    ~Listener() = default;
  };

  // workers: whom to look at, asked each time.
  Watchdogs(io::Loop& loop, const proc::Containment& containment,
            std::function<std::vector<pid_t>()> workers, Listener& listener)
      : loop_(loop), containment_(containment), workers_(std::move(workers)), listener_(listener) {}

  // Tells the workers in their environment where the file timer is.
  Status open(Node& node);
  void close();  // also takes the file away in which workers arm timers

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
