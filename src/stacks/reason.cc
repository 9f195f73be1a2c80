// One sentence for each reason.
#include "stacks/reason.h"

#include "base/text.h"
#include "io/fd.h"

#include <errno.h>

namespace lockstep::stacks {
namespace {

std::string stacks_of(pid_t pid) {
  return "the stacks of process " + std::to_string(pid) + " are not readable: ";
}

// From 1 on, Yama lets a process read only its descendants, and at 2 and 3 none without a
// capability.
std::string yama() {
  const auto scope = io::read_file("/proc/sys/kernel/yama/ptrace_scope", 16);
  if (!scope || strip(*scope) == "0")
    return "it belongs to another user, or a container or security policy forbids it";
  return "it belongs to another user, or kernel.yama.ptrace_scope forbids it (it is " +
         std::string(strip(*scope)) + ")";
}

}  // namespace

Reason gone(pid_t pid) {
  return {Unreadable::gone, stacks_of(pid) + "the process has ended"};
}

Reason denied(pid_t pid) {
  return {Unreadable::denied, stacks_of(pid) + "the kernel refuses (" + yama() + ")"};
}

Reason not_python(pid_t pid) {
  return {Unreadable::not_python, stacks_of(pid) + "it does not run CPython"};
}

Reason unknown_python(pid_t pid, const std::string& version) {
  const std::string which =
      version.empty() ? "an unknown version of CPython" : "CPython " + version;
  return {Unreadable::unknown_python,
          stacks_of(pid) + "it runs " + which + "; release builds of 3.8 to 3.14 are known"};
}

Reason starting(pid_t pid) {
  return {Unreadable::starting, stacks_of(pid) + "its Python starts or ends"};
}

Reason slow(pid_t pid) {
  return {Unreadable::slow, stacks_of(pid) + "its memory was not read in time"};
}

Reason changed(pid_t pid) {
  return {Unreadable::changed, stacks_of(pid) + "its memory does not look like CPython's any more"};
}

Reason reason_of_errno(pid_t pid, int sys_errno) {
  switch (sys_errno) {
    case ESRCH:
    case ENOENT:
      return gone(pid);
    case EPERM:
    case EACCES:
      return denied(pid);
    case ENOSYS:
      return {Unreadable::no_call, stacks_of(pid) +
                                       "this kernel or a filter of system calls has no "
                                       "process_vm_readv()"};
    default:
      return changed(pid);
  }
}

}  // namespace lockstep::stacks
