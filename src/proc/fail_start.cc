// Explains a failed fork().
#include "proc/fail_start.h"

#include <errno.h>

#include <string>
#include <utility>

namespace lockstep::proc {

Failure fail_start(std::string_view what, int sys_errno) {
  Error error = fail_sys("start " + std::string(what), sys_errno).value();
  // fork() reports every limit of processes as EAGAIN, "Resource temporarily unavailable".
  if (sys_errno == EAGAIN)
    error.hint =
        "a limit of processes is reached: raise ulimit -u for this user, or pids.max of the "
        "container or cgroup";
  return Failure(std::move(error));
}

}  // namespace lockstep::proc
