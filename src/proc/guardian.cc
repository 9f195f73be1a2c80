// Splits off the guardian and runs it. The fork happens before anything else is set up, and the
// guardian has no state and no loop: little in it can fail.
#include "proc/guardian.h"

#include "proc/fail_start.h"
#include "proc/process_tree.h"
#include "proc/signals.h"
#include "proc/spawn.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>

namespace lockstep::proc {
namespace {

// A process that survives SIGKILL for this long hangs in the kernel.
constexpr std::chrono::seconds kSweepLimit{10};

void say(const std::string& text) {
  // The reader is gone: nothing more can be done.
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

void report_unkillable(const Sweep& sweep) {
  for (const pid_t pid : sweep.unkillable)
    say("lockstep: process " + std::to_string(pid) + " (" + command_of(pid) +
        ") could not be killed, probably because of an uninterruptible system call\n");
}

// Forwards signals until the agent has ended. Returns the agent's wait status.
int attend(pid_t agent, const sigset_t& signals) {
  while (true) {
    siginfo_t info{};
    // Wait for signals one at a time instead of installing handlers: then no code of the guardian
    // runs inside a handler.
    if (sigwaitinfo(&signals, &info) < 0) continue;
    if (info.si_signo != SIGCHLD) {
      // The mark tells the agent that this signal was forwarded, see kForwardedMark.
      sigval mark{};
      mark.sival_int = kForwardedMark;
      sigqueue(agent, info.si_signo, mark);
      continue;
    }
    int status = 0;
    if (waitpid(agent, &status, WNOHANG) == agent) return status;
    // Orphans come to the guardian, since it is a subreaper. WNOWAIT keeps the agent's own status
    // in place.
    siginfo_t orphan{};
    while (waitid(P_ALL, 0, &orphan, WEXITED | WNOHANG | WNOWAIT) == 0 && orphan.si_pid != 0 &&
           orphan.si_pid != agent)
      waitpid(orphan.si_pid, nullptr, 0);
  }
}

[[noreturn]] void guard(pid_t agent, const std::set<pid_t>& not_ours,
                        const std::optional<Cgroup>& cgroup) {
  prctl(PR_SET_NAME, "lockstep-guard");
  const int status = attend(agent, handled_signals());
  // Kill the cgroup first: its processes cannot fork meanwhile. The sweep finds the rest and reaps.
  if (cgroup) cgroup->kill_all();
  report_unkillable(sweep_descendants(not_ours, kSweepLimit));
  if (cgroup) cgroup->remove();
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  say("lockstep: the agent (pid " + std::to_string(agent) + ") was ended by " +
      signal_name(signal) + "; all workers were stopped\n");
  // Shells report a program that a signal has ended in this way.
  _exit(128 + signal);
}

}  // namespace

Result<Guardian> split_off_guardian(const std::optional<Cgroup>& cgroup, bool agent_dies_with_us) {
  Guardian guardian;
  guardian.pid = getpid();
  // Open the pidfd before the fork, while the pid certainly belongs to the guardian. The agent
  // watches the guardian through it.
  guardian.pidfd = io::Fd(static_cast<int>(syscall(SYS_pidfd_open, guardian.pid, 0)));
  if (!guardian.pidfd) return fail_sys("watch the guardian", errno);
  // `sleep 9 & exec lockstep run ...` hands us children that do not belong to the job.
  const std::vector<pid_t> inherited = children_of(guardian.pid);
  become_subreaper();
  const pid_t agent = fork();
  if (agent < 0) return fail_start("the agent", errno);
  if (agent > 0) {
    guardian.pidfd.reset();
    guard(agent, {inherited.begin(), inherited.end()}, cgroup);
  }
  prctl(PR_SET_NAME, "lockstep-agent");
  // In a PID namespace the kernel then kills all workers as well: init, their ancestor, dies with
  // the agent. On the other rungs the agent must live on for a moment to sweep.
  if (agent_dies_with_us) prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guardian.pid) _exit(137);  // the guardian died before prctl()
  become_subreaper();
  // Leave the user's process group, so that a signal to the group (Ctrl-C) reaches the agent once,
  // through the guardian. A session of its own would do the same, but costs half a millisecond on
  // kernels that schedule by session (autogroup).
  setpgid(0, 0);
  sigset_t output;
  sigemptyset(&output);
  // A background process group may still write to a terminal with `stty tostop`.
  sigaddset(&output, SIGTTOU);
  block(output);
  return guardian;
}

}  // namespace lockstep::proc
