#include "proc/fail_start.h"

#include <errno.h>

#include <string>
#include <utility>

namespace lockstep::proc {

Failure fail_start(std::string_view what, int sys_errno) {
  Error error = fail_sys("start " + std::string(what), sys_errno).value();
  if (sys_errno == EAGAIN)
    error.hint =
        "a limit of processes is reached: this user's (ulimit -u), or that of the container or "
        "cgroup (pids.max)";
  return Failure(std::move(error));
}

}  // namespace lockstep::proc
