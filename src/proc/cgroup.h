// A control group (cgroup v2) for one job's workers on this node. cgroup.kill ends all processes
// inside at once, no matter what they forked. The group lies below this process's own group. No
// controller is enabled, so limits and accounting stay unchanged.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <string>

namespace lockstep::proc {

class Cgroup {
 public:
  // Makes the group. Fails with unavailable or denied if there is no writable cgroup v2, or the
  // kernel has no cgroup.kill (before 5.14).
  static Result<Cgroup> create();

  int procs_fd() const { return procs_.get(); }  // a child writes "0" here to enter the group
  const std::string& path() const { return path_; }
  // Kills every process inside. Returns at once.
  void kill_all() const;
  // Waits up to a second until the group is empty, then removes the group. The guardian calls this
  // last.
  void remove() const;

 private:
  std::string path_;
  io::Fd procs_;
  io::Fd kill_;
};

}  // namespace lockstep::proc
