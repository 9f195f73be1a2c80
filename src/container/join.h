// Lets this process see what a process of a container sees. Works with every runtime, because a
// container is nothing but the namespaces of its processes.
#pragma once

#include "base/error.h"

#include <sys/types.h>

namespace lockstep::container {

// Joins the mounts, the root and the working folder of the process, and its user, network, IPC and
// host name where they differ. Does not join its pids: the containers of Lockstep have the host's.
// This process must have a single thread. Errors: unavailable (the process has ended), denied, as
// for a user whose container a daemon of root has made.
Status join(pid_t pid);

}  // namespace lockstep::container
