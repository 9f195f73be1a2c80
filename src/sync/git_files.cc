#include "sync/git_files.h"

#include "base/environment.h"
#include "base/text.h"
#include "io/fd.h"
#include "proc/find_in_path.h"
#include "proc/signals.h"
#include "proc/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

namespace lockstep::sync {
namespace {

constexpr std::size_t kMostOutput = 1UL << 30;
constexpr std::size_t kMostWords = 4096;
constexpr int kLookForSignalsMs = 100;

// Under a git hook, GIT_DIR and the like name another repository.
bool is_for_git(std::string_view variable) {
  return !variable.starts_with("GIT_");
}

// A repository's settings override protocol.allow, but not GIT_ALLOW_PROTOCOL. An empty list keeps
// every version of git from starting a remote's program.
constexpr const char* kGitVariables[] = {"GIT_NO_LAZY_FETCH=1",
                                         "GIT_ALLOW_PROTOCOL=", "GIT_OPTIONAL_LOCKS=0",
                                         "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"};

// -c settings override the repository's own. core.fsmonitor and core.hooksPath could name programs
// to run.
std::vector<std::string> git_command(const std::string& folder,
                                     const std::vector<std::string>& words) {
  std::vector<std::string> argv = {"git", "--no-pager", "-C", folder};
  for (const char* setting :
       {"core.fsmonitor=false", "core.hooksPath=/dev/null", "protocol.allow=never"})
    argv.insert(argv.end(), {"-c", setting});
  argv.insert(argv.end(), words.begin(), words.end());
  return argv;
}

struct Outputs {
  std::string out;
  std::string err;
};

// Returns true if a signal asks this process to end. The signals are blocked and stay pending for
// the code that handles them.
bool is_asked_to_end() {
  sigset_t pending;
  const sigset_t stops = proc::stop_signals();
  return sigpending(&pending) == 0 && sigandset(&pending, &pending, &stops) == 0 &&
         sigisemptyset(&pending) == 0;
}

// Reads both pipes to their ends, in whatever order git writes. Watches for signals, because git
// may never end: an index may be a FIFO, or lie on a network file system that does not answer.
Status read_both(int out, int err, Outputs& read_into) {
  std::array<pollfd, 2> fds = {pollfd{out, POLLIN, 0}, pollfd{err, POLLIN, 0}};
  std::array<char, 64UL << 10> bytes;
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    // The signals are blocked, so poll() must return from time to time.
    if (poll(fds.data(), fds.size(), kLookForSignalsMs) < 0 && errno != EINTR)
      return fail_sys("poll", errno);
    if (is_asked_to_end()) return fail(Errc::canceled, "git was stopped");
    for (pollfd& each : fds) {
      if (each.fd < 0 || each.revents == 0) continue;
      const ssize_t got = read(each.fd, bytes.data(), bytes.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        each.fd = -1;
        continue;
      }
      std::string& text = each.fd == out ? read_into.out : read_into.err;
      // Keep reading stderr after the limit: git would block on a full pipe.
      if (each.fd == err && text.size() > kMostWords) continue;
      text.append(bytes.data(), static_cast<std::size_t>(got));
      if (text.size() > kMostOutput) return fail(Errc::exhausted, "git names too many files");
    }
  }
  return {};
}

// Returns git's output. unavailable: git failed; the message has the first line of its stderr.
// worktree: overrides core.worktree of the repository, which may name any folder.
Result<std::string> run_git(const std::vector<std::string>& argv,
                            const std::string& worktree = "") {
  const auto git = proc::find_in_path("git");
  if (!git) return fail(Errc::not_found, "git is not in PATH");
  LOCKSTEP_TRY_ASSIGN(io::Pipe out, io::make_pipe());
  LOCKSTEP_TRY_ASSIGN(io::Pipe err, io::make_pipe());
  const io::Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  proc::SpawnSpec spec;
  spec.executable = *git;
  spec.argv = argv;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (is_for_git(*entry)) spec.env.emplace_back(*entry);
  for (const char* variable : kGitVariables)
    spec.env.emplace_back(variable);
  if (!worktree.empty()) spec.env.push_back("GIT_WORK_TREE=" + worktree);
  spec.stdin_fd = null.get();
  spec.stdout_fd = out.write.get();
  spec.stderr_fd = err.write.get();
  LOCKSTEP_TRY_ASSIGN(proc::Child child, proc::spawn(spec));
  // Close our copies: otherwise the pipes never end.
  out.write.reset();
  err.write.reset();
  Outputs said;
  const Status read = read_both(out.read.get(), err.read.get(), said);
  // The whole group: git may have started helpers.
  if (!read) child.signal_group(SIGKILL);
  pollfd ended{child.pidfd(), POLLIN, 0};
  while (poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  const auto exit = child.reap();
  if (!read) return Failure(read.error());
  if (!exit || !exit->ok())
    return fail(Errc::unavailable,
                "git: " + printable(strip(said.err.substr(0, said.err.find('\n')))));
  return std::move(said.out);
}

bool is_ours(const struct stat& info) {
  return is_trusted_owner(info.st_uid, geteuid(), env_text("SUDO_UID"));
}

// Checks a link and its target, as git does. A missing path counts as ours, because git reports it.
bool belongs_to_us(const std::string& path) {
  struct stat info {};
  return (lstat(path.c_str(), &info) != 0 || is_ours(info)) &&
         (stat(path.c_str(), &info) != 0 || is_ours(info));
}

}  // namespace

bool is_trusted_owner(unsigned int owner, unsigned int user, std::string_view sudo_uid) {
  if (owner == 0 || owner == user) return true;
  return user == 0 && parse_int(sudo_uid) == std::optional<std::int64_t>(owner);
}

// Asks git only if safe.directory has entries. git before 2.35.2 does not know safe.directory and
// would accept any repository.
Status check_git_owner(const std::string& top) {
  const std::string git = top + "/.git";
  if (belongs_to_us(top) && belongs_to_us(git) && belongs_to_us(git_folder_of(top))) return {};
  std::string words =
      "git: fatal: detected dubious ownership in repository at '" + printable(top) + "'";
  const auto trusted = run_git(git_command("/", {"config", "--get-all", "safe.directory"}));
  if (trusted && !trusted->empty()) {
    const auto asked = run_git(git_command(top, {"rev-parse", "--git-dir"}));
    if (asked) return {};
    words = asked.error().message;
  }
  return fail(Errc::denied, words,
              "if you trust its owner: git config --global --add safe.directory " + printable(top));
}

std::vector<std::string> git_files_command(const std::string& folder) {
  // -c lists tracked files, -o untracked ones; -z leaves names unquoted.
  return git_command(folder, {"ls-files", "-c", "-o", "-z", "--exclude-standard"});
}

std::vector<std::string> split_at_nul(std::string_view output) {
  std::vector<std::string> paths;
  while (!output.empty()) {
    const std::size_t end = output.find('\0');
    if (end == std::string_view::npos) break;  // the output was cut
    std::string_view path = output.substr(0, end);
    output.remove_prefix(end + 1);
    // git ends the path of an inner repository with a slash.
    if (path.ends_with('/')) path.remove_suffix(1);
    if (!path.empty()) paths.emplace_back(path);
  }
  return paths;
}

Result<std::vector<std::string>> git_files(const std::string& folder) {
  LOCKSTEP_TRY_ASSIGN(const std::string paths,
                      run_git(git_files_command(folder), git_top_of(folder)));
  return split_at_nul(paths);
}

// Follows git's rule: a repository's .git has a HEAD, and the .git of a worktree or submodule is a
// file.
bool is_git_top(const std::string& folder) {
  struct stat info {};
  const std::string git = folder + "/.git";
  if (stat(git.c_str(), &info) != 0) return false;
  return S_ISREG(info.st_mode) || lstat((git + "/HEAD").c_str(), &info) == 0;
}

std::string git_folder_of(const std::string& top) {
  std::string git = top + "/.git";
  std::string text = io::read_file(git, kMostWords).value_or("");
  if (!text.starts_with("gitdir: ")) return git;
  text = strip(text.substr(8));
  return text.starts_with('/') ? text : top + "/" + text;
}

std::string git_top_of(std::string_view folder) {
  for (std::string at(folder == "/" ? "" : folder); !at.empty(); at.resize(at.rfind('/')))
    if (is_git_top(at)) return at;
  return is_git_top("") ? "/" : "";
}

}  // namespace lockstep::sync
