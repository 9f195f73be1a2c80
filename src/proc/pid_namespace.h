// A PID namespace with a private /proc for one job's workers. The kernel kills its init with the
// agent, and with init every process inside. No process can escape, but workers see other pids than
// `ps` outside. Needs CAP_SYS_ADMIN or unprivileged user namespaces.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <string>

namespace lockstep::proc {

// Identifies this process's PID namespace across reboots and machines: "<boot id>-<namespace>". A
// pid means nothing without it.
std::string pid_namespace_id();

class PidNamespace {
 public:
  // Makes the namespace. Every later child of this process is born inside. Call once, on the main
  // thread.
  static Result<PidNamespace> enter_for_children();

  // For SpawnSpec: the mounts with a private /proc.
  int mount_namespace_fd() const { return mounts_.get(); }
  pid_t init_pid() const { return init_; }
  // Ends init, and with it every process inside. Returns when all are gone.
  void end();

 private:
  pid_t init_ = -1;
  io::Fd mounts_;
  io::Fd lifeline_;  // init exits when this end is closed
};

}  // namespace lockstep::proc
