// A PID namespace with a private /proc for one job's workers. Its init dies with the agent (the
// kernel sees to it), and with init the kernel ends every process inside. Nothing is left to
// chance, but workers see other pids than `ps` outside does. Needs CAP_SYS_ADMIN or unprivileged
// user namespaces.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <string>

namespace lockstep::proc {

// Names this process's PID namespace for all time and all machines: "<boot id>-<namespace>". A pid
// means nothing without it.
std::string pid_namespace_id();

class PidNamespace {
 public:
  // From now on every child of this process is born in the namespace. Main thread only, once.
  static Result<PidNamespace> enter_for_children();

  int mount_namespace_fd() const { return mounts_.get(); }  // for SpawnSpec: where /proc is private
  pid_t init_pid() const { return init_; }
  // Ends init and thereby every process inside; returns when all are gone.
  void end();

 private:
  pid_t init_ = -1;
  io::Fd mounts_;
  io::Fd lifeline_;  // init ends when we let go of it
};

}  // namespace lockstep::proc
