// A control group of our own (cgroup v2) for one job's workers on this node: cgroup.kill ends all
// that is inside at once, whatever it forked. Made below this process's own group; no controller is
// switched on, so limits and accounting stay as they were.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <string>

namespace lockstep::proc {

class Cgroup {
 public:
  // unavailable/denied where there is no writable cgroup v2 or its kernel has no cgroup.kill
  // (< 5.14).
  static Result<Cgroup> create();

  int procs_fd() const { return procs_.get(); }  // a child writes "0" here to enter
  const std::string& path() const { return path_; }
  void kill_all() const;
  // Waits up to a second for it to be empty, then removes it. The guardian does it, at its end.
  void remove() const;

 private:
  std::string path_;
  io::Fd procs_;
  io::Fd kill_;
};

}  // namespace lockstep::proc
