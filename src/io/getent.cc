// Runs getent as a child of the waiting thread, so that it dies with this thread.
#include "io/getent.h"

#include "base/environment.h"
#include "base/text.h"
#include "io/fd.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string_view>
#include <vector>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

namespace lockstep::io {
namespace {

using Clock = std::chrono::steady_clock;
// Directory services such as LDAP may take long to answer or to time out.
constexpr std::chrono::seconds kPatience{30};
// Limits of the answer, and of the words of an error.
constexpr std::size_t kOutputLimit = 64UL << 10;
constexpr std::size_t kWordsLimit = 300;

// Runs between fork() and exec(). System calls only: another thread may have held a lock of the C
// library during the fork.
[[noreturn]] void become(const char* program, char* const* argv, int null, int out, int err) {
  // The signal follows the thread that forked. If the process gives up the look-up and ends, getent
  // ends with it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  for (int signal = 1; signal <= SIGRTMAX; ++signal)
    if (signal != SIGKILL && signal != SIGSTOP) sigaction(signal, &plain, nullptr);
  // The mask survives exec(). The look-up thread has blocked every signal, so getent would ignore
  // Ctrl-C without this.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (dup2(null, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2) execve(program, argv, environ);
  constexpr std::string_view kWords = "it cannot be run";
  if (write(2, kWords.data(), kWords.size()) < 0) _exit(126);
  _exit(127);
}

struct Child {
  Fd pidfd;
  Fd out;
  Fd err;
};

Result<Child> start(const std::string& program, std::vector<std::string> words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  LOCKSTEP_TRY_ASSIGN(Pipe out, make_pipe());
  LOCKSTEP_TRY_ASSIGN(Pipe err, make_pipe());
  const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  // Any descriptor will do if /dev/null is missing.
  const int in = null ? null.get() : out.read.get();
  const pid_t pid = fork();
  if (pid < 0) return fail_sys("start " + program, errno);
  if (pid == 0) become(program.c_str(), argv.data(), in, out.write.get(), err.write.get());
  return Child{Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))), std::move(out.read),
               std::move(err.read)};
}

// Reads available bytes, and closes the descriptor at its end. Returns false if the text is too
// long.
bool take(Fd& fd, const pollfd& ready, std::string& text) {
  if (ready.revents == 0) return true;
  char bytes[4096];
  const ssize_t got = read(fd.get(), bytes, sizeof bytes);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) {
    fd.reset();
    return true;
  }
  text.append(bytes, static_cast<std::size_t>(got));
  return text.size() <= kOutputLimit;
}

// Reads until both pipes have ended. Returns false if the time or the size limit ran out.
bool read_both(Child& child, Clock::time_point until, std::string& out, std::string& err) {
  while (child.out || child.err) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd ready[] = {{child.out.get(), POLLIN, 0}, {child.err.get(), POLLIN, 0}};
    if (poll(ready, 2, static_cast<int>(left)) < 0 && errno != EINTR) return false;
    if (!take(child.out, ready[0], out) || !take(child.err, ready[1], err)) return false;
  }
  return true;
}

// Kills and reaps the child. Its exit status is not needed. The agent, which reaps orphans, may
// have taken it already.
void end(const Child& child) {
  syscall(SYS_pidfd_send_signal, child.pidfd.get(), SIGKILL, nullptr, 0);
  siginfo_t ignored{};
  waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(child.pidfd.get()), &ignored, WEXITED);
}

}  // namespace

std::optional<std::string> find_getent() {
  for (const std::string& folder : split(env_text("PATH") + ":/usr/bin:/bin", ':')) {
    std::string program = folder + "/getent";
    // A relative entry of PATH would depend on the current folder.
    if (folder.starts_with('/') && access(program.c_str(), X_OK) == 0) return program;
  }
  return std::nullopt;
}

Result<GetentAnswer> ask_getent(const std::string& program, const std::string& name) {
  const std::vector<std::string> command = getent_command(name);
  if (!getent_takes(name)) return fail(Errc::invalid_input, "not a valid host name");
  LOCKSTEP_TRY_ASSIGN(Child child, start(program, command));
  std::string out;
  std::string err;
  // Read before waiting for the end: a child with a full pipe would never end.
  const bool complete = read_both(child, Clock::now() + kPatience, out, err);
  end(child);
  if (!complete)
    return fail(Errc::timeout,
                fmt::format("'{}' did not end within {} s", join(command, " "), kPatience.count()));
  GetentAnswer answer = parse_getent(out);
  if (!answer.addresses.empty()) return answer;
  const std::string words = printable(strip(err), kWordsLimit);
  return fail(Errc::unavailable, fmt::format("'{}' knows no address{}", join(command, " "),
                                             words.empty() ? "" : ": " + words));
}

}  // namespace lockstep::io
