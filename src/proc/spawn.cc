// Starts a child with clone(CLONE_VM | CLONE_VFORK). fork() copies page tables, so its cost grows
// with the memory of this process: 22 ms at 1 GiB. This way takes 0.1 ms.
#include "proc/spawn.h"

#include "base/exit_codes.h"
#include "base/text.h"
#include "proc/exec_pointers.h"
#include "proc/fail_start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

namespace lockstep::proc {
namespace {

// Shared with the child, which runs in this process's memory until it execs or exits.
struct Launch {
  const char* executable;
  char* const* argv;
  char* const* envp;
  int fds[4];
  const cpu_set_t* cpus;
  std::size_t cpus_size;
  const rlimit* open_files;
  bool own_session;
  bool die_with_parent;
  pid_t parent;  // as the child sees it: 0 from inside another PID namespace
  int cgroup_procs_fd;
  int mount_namespace_fd;
  const char* return_folder;  // entering a mount namespace moves a process to its root
  const char* folder;         // nullptr: do not change
  const char* failed_step = nullptr;
  int failed_errno = 0;
};

[[noreturn]] void give_up(Launch& launch, const char* step) {
  // The parent reads these two after the child has exited: memory is shared.
  launch.failed_step = step;
  launch.failed_errno = errno;
  _exit(kExitNotFound);
}

void clean_signals() {
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  for (int signal = 1; signal <= SIGRTMAX; ++signal)
    if (signal != SIGKILL && signal != SIGSTOP) sigaction(signal, &plain, nullptr);
}

// Any descriptor of ours may become one of the child's first four, even a descriptor among our own
// first four. First move those above 3, then put all in place.
void place_descriptors(Launch& launch) {
  int moved[4];
  for (int i = 0; i < 4; ++i) {
    moved[i] = launch.fds[i];
    if (moved[i] < 0 || moved[i] > 3) continue;
    moved[i] = fcntl(moved[i], F_DUPFD_CLOEXEC, 4);
    if (moved[i] < 0) give_up(launch, "duplicate a descriptor");
  }
  for (int i = 0; i < 4; ++i)
    if (moved[i] >= 0 && dup2(moved[i], i) < 0) give_up(launch, "set up standard streams");
}

void close_the_rest(unsigned first) {
  if (syscall(SYS_close_range, first, ~0U, 0U) == 0) return;  // missing before Linux 5.9
  const int limit = static_cast<int>(std::min<long>(sysconf(_SC_OPEN_MAX), 65536));
  for (int fd = static_cast<int>(first); fd < limit; ++fd)
    close(fd);
}

// Runs in the child, but in the parent's memory. System calls only: a lock of the C library may be
// held by another thread.
__attribute__((no_sanitize("address"))) int child_main(void* context) {
  Launch& launch = *static_cast<Launch*>(context);
  // Enter the cgroup first: no process of the worker may ever exist outside.
  if (launch.cgroup_procs_fd >= 0 && write(launch.cgroup_procs_fd, "0", 1) != 1)
    give_up(launch, "enter the cgroup");
  // A session of its own keeps Ctrl-C at the terminal away from the worker: the agent decides which
  // signal a worker gets. The session is also a process group, which one kill() reaches.
  if (launch.own_session && setsid() < 0) give_up(launch, "start a session");
  // Signals ignored by this process (SIGHUP after nohup) must not stay ignored in the worker.
  clean_signals();
  if (launch.mount_namespace_fd >= 0) {
    if (setns(launch.mount_namespace_fd, CLONE_NEWNS) != 0)
      give_up(launch, "enter the mount namespace");
    if (chdir(launch.return_folder) != 0) give_up(launch, "return to the current folder");
  }
  if (launch.folder != nullptr && chdir(launch.folder) != 0) give_up(launch, "enter the folder of");
  // PDEATHSIG follows the thread that started the child, and is armed only now: the parent may have
  // died before.
  if (launch.die_with_parent) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(launch, "set the parent-death signal of");
    if (const pid_t parent = getppid(); parent != launch.parent && parent != 0)
      _exit(kExitNotFound);  // already orphaned
  }
  place_descriptors(launch);
  // Descriptors without O_CLOEXEC, such as inherited descriptors, must not leak into the worker.
  close_the_rest(launch.fds[3] >= 0 ? 4 : 3);
  if (launch.cpus != nullptr && sched_setaffinity(0, launch.cpus_size, launch.cpus) != 0)
    give_up(launch, "bind to CPUs");
  if (launch.open_files != nullptr && setrlimit(RLIMIT_NOFILE, launch.open_files) != 0)
    give_up(launch, "restore the limit of open files");
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(launch.executable, launch.argv, launch.envp);
  give_up(launch, "run");
}

// One stack for all children, used by one at a time: with CLONE_VFORK the starting thread waits
// until the stack is free, and other threads wait for the mutex.
void* child_stack_top() {
  alignas(64) static char stack[64UL * 1024];
  return stack + sizeof stack;
}

std::vector<unsigned char> cpu_mask(const std::vector<int>& cpus) {
  if (cpus.empty()) return {};
  const auto highest = static_cast<std::size_t>(*std::max_element(cpus.begin(), cpus.end()));
  std::vector<unsigned char> mask(CPU_ALLOC_SIZE(highest + 1));
  for (const int cpu : cpus)
    CPU_SET_S(static_cast<std::size_t>(cpu), mask.size(),
              reinterpret_cast<cpu_set_t*>(mask.data()));
  return mask;
}

struct Cloned {
  pid_t pid;
  int pidfd;
  int error;
};

// Blocks all signals: no handler may run in the child while it shares our memory.
Cloned clone_child(Launch& launch) {
  static std::mutex one_at_a_time;
  const std::lock_guard alone(one_at_a_time);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  const pid_t pid = clone(child_main, child_stack_top(),
                          CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &launch, &pidfd);
  const int error = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return {pid, pidfd, error};
}

// If a newer version has replaced this binary, own_executable() returns "... (deleted)". Start the
// running version, not the new one.
const char* to_start(const std::string& executable) {
  const bool replaced = executable.ends_with(" (deleted)") &&
                        access(executable.c_str(), F_OK) != 0 && own_executable() == executable;
  return replaced ? "/proc/self/exe" : executable.c_str();
}

}  // namespace

std::optional<Exit> Child::reap() {
  if (exit_) return exit_;
  siginfo_t info{};
  if (waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd_.get()), &info,
             WEXITED | WNOHANG) != 0) {
    if (errno != ECHILD) return std::nullopt;
    exit_ = Exit{.code = 1};  // another waitpid() took the status: how the child ended is unknown
    return exit_;
  }
  if (info.si_pid == 0) return std::nullopt;
  Exit end;
  if (info.si_code == CLD_EXITED) {
    end.code = info.si_status;
  } else {
    end.signal = info.si_status;
    end.core_dumped = info.si_code == CLD_DUMPED;
  }
  exit_ = end;
  return exit_;
}

void Child::signal_group(int signal) const {
  if (!alive()) return;
  // The child has not been reaped, so its pid cannot belong to another process.
  // ESRCH: the child has no group of its own, since own_session is false.
  if (kill(-pid_, signal) != 0 && errno == ESRCH) kill(pid_, signal);
}

Result<Child> spawn(const SpawnSpec& spec) {
  const std::vector<char*> argv = exec_pointers(spec.argv);
  const std::vector<char*> envp = exec_pointers(spec.env);
  const std::vector<unsigned char> mask = cpu_mask(spec.cpus);
  Launch launch{};
  launch.executable = to_start(spec.executable);
  launch.argv = argv.data();
  launch.envp = envp.data();
  launch.fds[0] = spec.stdin_fd;
  launch.fds[1] = spec.stdout_fd;
  launch.fds[2] = spec.stderr_fd;
  launch.fds[3] = spec.third_fd;
  launch.cpus = mask.empty() ? nullptr : reinterpret_cast<const cpu_set_t*>(mask.data());
  launch.cpus_size = mask.size();
  launch.open_files = spec.open_files ? &*spec.open_files : nullptr;
  launch.own_session = spec.own_session;
  launch.die_with_parent = spec.die_with_parent;
  launch.parent = getpid();
  launch.cgroup_procs_fd = spec.cgroup_procs_fd;
  launch.mount_namespace_fd = spec.mount_namespace_fd;
  char folder[PATH_MAX];
  // setns() moves the child to the namespace's root, so remember the folder.
  if (spec.mount_namespace_fd >= 0 && getcwd(folder, sizeof folder) == nullptr)
    return fail_sys("find the current folder", errno);
  launch.return_folder = folder;
  launch.folder = spec.folder.empty() ? nullptr : spec.folder.c_str();

  const Cloned cloned = clone_child(launch);
  if (cloned.pid < 0) return fail_start(spec.executable, cloned.error);
  Child child(cloned.pid, io::Fd(cloned.pidfd));
  // The child never ran the program. Reap it here: no Child object will.
  if (launch.failed_step != nullptr) {
    siginfo_t ignored{};
    waitid(P_PID, static_cast<id_t>(cloned.pid), &ignored, WEXITED);
    return fail_sys(std::string(launch.failed_step) + " " + spec.executable, launch.failed_errno);
  }
  return child;
}

Result<std::string> find_executable(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) return name;
  int worst = ENOENT;
  for (const std::string& folder : split(path, ':')) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    struct stat found {};
    if (stat(candidate.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) continue;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    // Report "permission denied" if any match exists, like execvp().
    worst = EACCES;
  }
  return fail_sys("find " + name + " in PATH", worst);
}

Result<std::string> own_executable() {
  std::array<char, 4096> path;
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  if (size > 0) return std::string(path.data(), static_cast<std::size_t>(size));
  const int why = errno;
  // /proc is missing: use the path that the kernel was told to start.
  // NOLINTNEXTLINE(performance-no-int-to-ptr): so the kernel hands it over
  const auto* started_as = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (started_as != nullptr && access(started_as, R_OK) == 0) return std::string(started_as);
  return fail_sys("find this binary", why);
}

}  // namespace lockstep::proc
