#include "container/inside.h"

#include "base/environment.h"
#include "base/text.h"
#include "io/fd.h"
#include "proc/fail_start.h"
#include "proc/process_tree.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace lockstep::container {
namespace {

std::string take_variable(std::string_view name) {
  std::string value = env_text(name);
  unsetenv(std::string(name).c_str());
  return value;
}

// Passes one signal on. Returns false once the process outside is gone.
bool pass_signal(int fifo, pid_t child) {
  unsigned char signal = 0;
  const ssize_t got = read(fifo, &signal, 1);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  kill(child, signal);
  return true;
}

// Tells the process outside the exit code. The FIFO has no name any more, and a writer of our own
// from the start would hide the end of the process outside.
void record(int fifo, int code) {
  const io::Fd writer(
      open(fmt::format("/proc/self/fd/{}", fifo).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  const std::array<unsigned char, 2> bytes = {kEnded, static_cast<unsigned char>(code)};
  if (writer) (void)!write(writer.get(), bytes.data(), bytes.size());
}

[[noreturn]] void stand_by(pid_t child, int child_fd, int fifo) {
  prctl(PR_SET_NAME, "lockstep-inside");
  std::array<pollfd, 2> fds = {pollfd{fifo, POLLIN, 0}, pollfd{child_fd, POLLIN, 0}};
  while (fds[1].revents == 0) {
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].revents == 0 || pass_signal(fifo, child)) continue;
    // The child is the guardian: its agent then ends all ranks, and the sweep below ends the agent.
    fds[0].fd = -1;
    kill(child, SIGKILL);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  (void)proc::sweep_descendants({}, kSweepLimit);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  record(fifo, code);
  _exit(code);
}

}  // namespace

std::optional<int> recorded_code(int fifo) {
  // One read: a process that still writes could keep a loop busy for ever. A pipe holds 64 KiB.
  std::string bytes(64UL << 10, '\0');
  const ssize_t got = read(fifo, bytes.data(), bytes.size());
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  // Signals that were not passed on may lie in front.
  const std::size_t ended = bytes.find(static_cast<char>(kEnded));
  if (ended == std::string::npos || ended + 1 == bytes.size()) return std::nullopt;
  return static_cast<unsigned char>(bytes[ended + 1]);
}

void wipe_secrets() {
  for (const char* name : {"LOCKSTEP_RDZV_TOKEN", "LOCKSTEP_NOTIFY", "LOCKSTEP_PAGE_TOKEN"})
    if (char* value = std::getenv(name); value != nullptr)
      explicit_bzero(value, std::strlen(value));
}

bool is_inside() {
  return env_variable(kTetherVariable).has_value();
}

Result<Inside> hold_on() {
  const std::string tether = take_variable(kTetherVariable);
  const std::string tether_folder = take_variable(kTetherFolderVariable);
  const std::string mask = take_variable(kMaskVariable);
  const std::string runtime = take_variable(kRuntimeVariable);
  const std::string folder = take_variable(kFolderVariable);
  io::Fd fifo(open(tether.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fifo) return fail_sys("reach the process outside of the container", errno);
  // This tells the process outside that the container runs.
  if (unlink(tether.c_str()) != 0) return fail_sys("remove " + tether, errno);
  // The mount holds the copy of our binary, and enroot has read the script, so their names can go.
  for (const std::string_view name : {kBinaryCopy, kScriptName})
    (void)unlink((tether.substr(0, tether.rfind('/') + 1) + std::string(name)).c_str());
  // The process outside does this too, unless it is killed. The folder may be out of sight here.
  (void)rmdir(tether_folder.c_str());
  // poll() never tells the end of a writer that was gone before this process opened the FIFO.
  unsigned char early = 0;  // a signal
  const ssize_t got = read(fifo.get(), &early, 1);
  if (got == 0) return fail(Errc::canceled, "the process outside of the container is gone");
  if (chdir(folder.c_str()) != 0)
    return fail_sys("enter the folder " + printable(folder) + " of the image", errno);
  // podman and docker have a mask of their own.
  umask(static_cast<mode_t>(std::strtoul(mask.c_str(), nullptr, 8)));
  setenv("PWD", folder.c_str(), 1);
  proc::become_subreaper();
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return proc::fail_start("the job in the container", errno);
  if (child > 0) {
    wipe_secrets();
    if (got > 0) kill(child, early);
    const io::Fd child_fd(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
    if (child_fd) stand_by(child, child_fd.get(), fifo.get());
    kill(child, SIGKILL);
    return fail_sys("watch the job in the container", errno);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(137);
  const std::size_t end = runtime.find(';');
  return Inside{.runtime = runtime.substr(0, end),
                .why = end == runtime.npos ? "" : runtime.substr(end + 1)};
}

}  // namespace lockstep::container
