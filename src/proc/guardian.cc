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

// A process that survives SIGKILL for so long hangs in the kernel.
constexpr std::chrono::seconds kSweepLimit{10};

void say(const std::string& text) {
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // nobody left to tell
}

void report_unkillable(const Sweep& sweep) {
  for (const pid_t pid : sweep.unkillable)
    say("lockstep: process " + std::to_string(pid) + " (" + command_of(pid) +
        ") could not be killed; it is probably in an uninterruptible system call\n");
}

// Passes signals on until the agent has ended, and returns its wait status.
int attend(pid_t agent, const sigset_t& signals) {
  while (true) {
    siginfo_t info{};
    if (sigwaitinfo(&signals, &info) < 0) continue;
    if (info.si_signo != SIGCHLD) {
      sigval mark{};
      mark.sival_int = kForwardedMark;
      sigqueue(agent, info.si_signo, mark);
      continue;
    }
    int status = 0;
    if (waitpid(agent, &status, WNOHANG) == agent) return status;
    // Orphans come to the guardian, the subreaper. WNOWAIT leaves the agent's own status in place.
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
  if (cgroup) cgroup->kill_all();
  report_unkillable(sweep_descendants(not_ours, kSweepLimit));
  if (cgroup) cgroup->remove();
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  say("lockstep: the agent (pid " + std::to_string(agent) + ") was ended by " +
      signal_name(signal) + "; all of its workers were stopped\n");
  _exit(128 + signal);
}

}  // namespace

Result<Guardian> split_off_guardian(const std::optional<Cgroup>& cgroup, bool agent_dies_with_us) {
  Guardian guardian;
  guardian.pid = getpid();
  guardian.pidfd = io::Fd(static_cast<int>(syscall(SYS_pidfd_open, guardian.pid, 0)));
  if (!guardian.pidfd) return fail_sys("watch the guardian", errno);
  // `sleep 9 & exec lockstep run ...` gives us children that are none of our business.
  const std::vector<pid_t> inherited = children_of(guardian.pid);
  become_subreaper();
  const pid_t agent = fork();
  if (agent < 0) return fail_start("the agent", errno);
  if (agent > 0) {
    guardian.pidfd.reset();
    guard(agent, {inherited.begin(), inherited.end()}, cgroup);
  }
  prctl(PR_SET_NAME, "lockstep-agent");
  if (agent_dies_with_us) prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guardian.pid) _exit(137);  // the guardian died before the line above
  become_subreaper();
  // The agent leaves the user's process group, so that a signal to the group (Ctrl-C) reaches it
  // once, through the guardian. A session of its own would do that too, but costs half a
  // millisecond where the kernel schedules by session (autogroup).
  setpgid(0, 0);
  sigset_t output;
  sigemptyset(&output);
  sigaddset(&output, SIGTTOU);  // a background group may still write to a `stty tostop` terminal
  block(output);
  return guardian;
}

}  // namespace lockstep::proc
