// Lets this process see what a process of a container sees. Works with every runtime, because a
// container is nothing but the namespaces of its processes.
#pragma once

#include "base/error.h"

#include <sys/types.h>

#include <functional>

namespace lockstep::container {

// Joins the mounts, the root and the working folder of the process, and its user, network, IPC and
// host name where they differ. Does not join its pids: the containers of Lockstep have the host's.
// Takes on the process's no_new_privs and the bounds of its capabilities, which count from the next
// exec on. This process must have a single thread. is_there: asked when all files of the process
// are open; false: the pid may mean another process. Errors: unavailable (the process has ended),
// denied, as for a user whose container a daemon of root has made.
Status join(pid_t pid, const std::function<bool()>& is_there);

}  // namespace lockstep::container
