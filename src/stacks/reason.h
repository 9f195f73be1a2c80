// Why the stacks of a process cannot be read.
#pragma once

#include <sys/types.h>

#include <string>

namespace lockstep::stacks {

enum class Unreadable {
  gone,            // the process has ended
  denied,          // the kernel refuses this process to read the memory
  no_call,         // the kernel has no process_vm_readv(), or a filter hides the call (gVisor)
  not_python,      // no CPython is mapped
  unknown_python,  // a CPython whose data no layout describes
  starting,        // CPython is mapped, but not initialized; or it has finalized
  slow,     // the limits on reads were used up, as on a loaded machine; the next try may work
  changed,  // the data made no sense: the process runs another program now, or is damaged
};

struct Reason {
  Unreadable kind = Unreadable::gone;
  std::string sentence;  // lower case start, no trailing full stop
};

Reason gone(pid_t pid);
Reason denied(pid_t pid);
Reason not_python(pid_t pid);
// `version` may be empty.
Reason unknown_python(pid_t pid, const std::string& version);
Reason starting(pid_t pid);
Reason slow(pid_t pid);
Reason changed(pid_t pid);

// Returns what a failed system call says about the process (ESRCH, ENOENT, EPERM, EACCES, ENOSYS).
// Any other errno: `changed`.
Reason reason_of_errno(pid_t pid, int sys_errno);

}  // namespace lockstep::stacks
