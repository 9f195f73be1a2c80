// Makes a PID namespace and runs its init.
#include "proc/pid_namespace.h"

#include "base/text.h"
#include "proc/fail_start.h"
#include "proc/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace lockstep::proc {
namespace {

// Enters a user namespace, so that an unprivileged user may make PID namespaces. The user keeps the
// same ids inside.
Status enter_user_namespace() {
  const std::string uid = std::to_string(geteuid());
  const std::string gid = std::to_string(getegid());
  if (unshare(CLONE_NEWUSER) != 0) return fail_sys("make a user namespace", errno);
  // The kernel accepts a gid_map from an unprivileged process only after this.
  LOCKSTEP_TRY(io::write_file("/proc/self/setgroups", "deny"));
  LOCKSTEP_TRY(io::write_file("/proc/self/uid_map", uid + " " + uid + " 1"));
  return io::write_file("/proc/self/gid_map", gid + " " + gid + " 1");
}

Status unshare_pids() {
  if (unshare(CLONE_NEWPID) == 0) return {};
  // EPERM: the user is unprivileged. Try again inside a user namespace.
  if (errno != EPERM) return fail_sys("make a PID namespace", errno);
  LOCKSTEP_TRY(enter_user_namespace());
  if (unshare(CLONE_NEWPID) != 0) return fail_sys("make a PID namespace", errno);
  return {};
}

Status mount_private_proc() {
  if (unshare(CLONE_NEWNS) != 0) return fail_sys("make a mount namespace", errno);
  // Otherwise the mount below could appear in the machine's own /proc.
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return fail_sys("make mounts private", errno);
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return fail_sys("mount a private /proc", errno);
  return {};
}

// Process 1 of the namespace. Dies with the agent and reaps orphans.
[[noreturn]] void init_main(int ready, int lifeline) {
  prctl(PR_SET_NAME, "lockstep-init");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Status mounted = mount_private_proc();
  const int answer = mounted ? 0 : mounted.error().sys;
  if (write(ready, &answer, sizeof answer) != sizeof answer || !mounted) _exit(1);
  close(ready);
  // The agent may have died before the death signal was armed. Its end of the lifeline is closed in
  // that case.
  char byte = 0;
  if (fcntl(lifeline, F_SETFL, O_NONBLOCK) == 0 && read(lifeline, &byte, 1) == 0) _exit(0);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  block(child);
  while (true) {
    // The kernel gives orphans of the namespace to process 1. Unreaped zombies would fill the table
    // of pids.
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    int signal = 0;
    sigwait(&child, &signal);
  }
}

}  // namespace

std::string pid_namespace_id() {
  const auto boot = io::read_file("/proc/sys/kernel/random/boot_id", 64);
  struct stat space {};
  const bool known = stat("/proc/self/ns/pid", &space) == 0;
  // A pid has a meaning only within a boot and a namespace, so both are part of the id.
  return std::string(strip(boot ? *boot : "")).substr(0, 8) + "-" +
         (known ? std::to_string(space.st_ino) : "0");
}

Result<PidNamespace> PidNamespace::enter_for_children() {
  LOCKSTEP_TRY_ASSIGN(io::Pipe ready, io::make_pipe());
  LOCKSTEP_TRY_ASSIGN(io::Pipe lifeline, io::make_pipe());
  LOCKSTEP_TRY(unshare_pids());
  const pid_t init = fork();
  if (init < 0) return fail_start("the namespace's init", errno);
  if (init == 0) {
    ready.read.reset();
    lifeline.write.reset();
    init_main(ready.write.get(), lifeline.read.get());
  }
  ready.write.reset();
  int answer = EIO;
  // init reports whether /proc could be mounted: without it the workers would see wrong pids.
  if (read(ready.read.get(), &answer, sizeof answer) != sizeof answer || answer != 0) {
    waitpid(init, nullptr, 0);
    return fail_sys("mount a private /proc for --isolation pidns", answer);
  }
  PidNamespace ns;
  ns.init_ = init;
  ns.lifeline_ = std::move(lifeline.write);
  // Workers enter this mount namespace, where /proc is private.
  const std::string mounts = "/proc/" + std::to_string(init) + "/ns/mnt";
  ns.mounts_ = io::Fd(open(mounts.c_str(), O_RDONLY | O_CLOEXEC));
  if (!ns.mounts_) return fail_sys("open " + mounts, errno);
  return ns;
}

void PidNamespace::end() {
  if (init_ <= 0) return;
  kill(init_, SIGKILL);
  waitpid(init_, nullptr, 0);
  init_ = -1;
}

}  // namespace lockstep::proc
