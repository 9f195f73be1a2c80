#include "sync/git_files.h"

#include "base/text.h"
#include "io/fd.h"
#include "proc/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace lockstep::sync {
namespace {

constexpr std::size_t kMostOutput = 1UL << 30;
constexpr std::size_t kMostWords = 4096;

// A hook's environment speaks of another repository.
bool is_for_git(std::string_view variable) {
  return !variable.starts_with("GIT_");
}

struct Outputs {
  std::string out;
  std::string err;
};

// Reads both until their ends, however the process mixes them.
Status read_both(int out, int err, Outputs& read_into) {
  std::array<pollfd, 2> fds = {pollfd{out, POLLIN, 0}, pollfd{err, POLLIN, 0}};
  std::array<char, 64UL << 10> bytes;
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return fail_sys("poll", errno);
    for (pollfd& each : fds) {
      if (each.fd < 0 || each.revents == 0) continue;
      const ssize_t got = read(each.fd, bytes.data(), bytes.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        each.fd = -1;
        continue;
      }
      std::string& text = each.fd == out ? read_into.out : read_into.err;
      if (each.fd == err && text.size() > kMostWords) continue;
      text.append(bytes.data(), static_cast<std::size_t>(got));
      if (text.size() > kMostOutput) return fail(Errc::exhausted, "git names too many files");
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> git_files_command(const std::string& folder) {
  // fsmonitor is a program that the repository names; nothing of a repository is run here. Whose
  // the folder is does not matter then.
  return {"git",      "-C", folder, "-c", "core.fsmonitor=false", "-c", "safe.directory=*",
          "ls-files", "-c", "-o",   "-z", "--exclude-standard"};
}

std::vector<std::string> split_at_nul(std::string_view output) {
  std::vector<std::string> paths;
  while (!output.empty()) {
    const std::size_t end = output.find('\0');
    if (end == std::string_view::npos) break;  // it was cut
    std::string_view path = output.substr(0, end);
    output.remove_prefix(end + 1);
    if (path.ends_with('/')) path.remove_suffix(1);
    if (!path.empty()) paths.emplace_back(path);
  }
  return paths;
}

Result<std::vector<std::string>> git_files(const std::string& folder) {
  const char* path = std::getenv("PATH");
  const auto git = proc::find_executable("git", path == nullptr ? "/bin:/usr/bin" : path);
  if (!git) return fail(Errc::not_found, "there is no git in PATH");
  LOCKSTEP_TRY_ASSIGN(io::Pipe out, io::make_pipe());
  LOCKSTEP_TRY_ASSIGN(io::Pipe err, io::make_pipe());
  const io::Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  proc::SpawnSpec spec;
  spec.executable = *git;
  spec.argv = git_files_command(folder);
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (is_for_git(*entry)) spec.env.emplace_back(*entry);
  spec.stdin_fd = null.get();
  spec.stdout_fd = out.write.get();
  spec.stderr_fd = err.write.get();
  LOCKSTEP_TRY_ASSIGN(proc::Child child, proc::spawn(spec));
  out.write.reset();
  err.write.reset();
  Outputs said;
  const Status read = read_both(out.read.get(), err.read.get(), said);
  if (!read) child.signal_group(SIGKILL);
  pollfd ended{child.pidfd(), POLLIN, 0};
  while (poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  const auto exit = child.reap();
  if (!read) return Failure(read.error());
  if (!exit || !exit->ok())
    return fail(Errc::unavailable,
                "git: " + printable(strip(said.err.substr(0, said.err.find('\n')))));
  return split_at_nul(said.out);
}

// As git sees it: a repository's own .git has a HEAD; that of a worktree or submodule is a file.
bool is_git_top(const std::string& folder) {
  struct stat info {};
  const std::string git = folder + "/.git";
  if (stat(git.c_str(), &info) != 0) return false;
  return S_ISREG(info.st_mode) || lstat((git + "/HEAD").c_str(), &info) == 0;
}

std::string git_top_of(std::string_view folder) {
  for (std::string at(folder == "/" ? "" : folder); !at.empty(); at.resize(at.rfind('/')))
    if (is_git_top(at)) return at;
  return is_git_top("") ? "/" : "";
}

}  // namespace lockstep::sync
