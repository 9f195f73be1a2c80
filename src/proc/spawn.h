// Starts child processes the vfork way; a pidfd tells when they end. A child begins with default
// signal dispositions, an empty mask, a session of its own (unless told otherwise) and no
// descriptor above 2 (above 3, where one is given for that). It dies with the thread that started
// it, so call spawn() from the main thread only.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace lockstep::proc {

struct SpawnSpec {
  std::string executable;  // a path; no PATH search (see find_executable)
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "NAME=value"
  std::string folder;            // where it begins; empty: where this process is
  int stdin_fd = -1;             // -1: this process's own
  int stdout_fd = -1;
  int stderr_fd = -1;
  int third_fd = -1;                 // becomes descriptor 3; -1: there is none
  std::vector<int> cpus;             // bind to these; empty: no change
  bool own_session = true;           // false: it may use this process's terminal
  bool die_with_parent = true;       // SIGKILL when the starting thread ends
  int cgroup_procs_fd = -1;          // an open cgroup.procs to enter before exec
  int mount_namespace_fd = -1;       // entered before exec
  std::optional<rlimit> open_files;  // RLIMIT_NOFILE to restore
};

struct Exit {
  int code = 0;    // exit status, if signal == 0
  int signal = 0;  // the signal that killed it, or 0
  bool core_dumped = false;

  bool ok() const { return code == 0 && signal == 0; }
  int python_code() const { return signal != 0 ? -signal : code; }
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};

// A started child. It is passive: whoever watches pidfd() calls reap() when that turns readable.
// The pid is never signalled after the child was reaped.
class Child {
 public:
  Child(pid_t pid, io::Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid() const { return pid_; }  // as `ps` shows it; kept for messages after the end
  int pidfd() const { return pidfd_.get(); }
  bool alive() const { return !exit_.has_value(); }  // not yet reaped
  const std::optional<Exit>& exit() const { return exit_; }

  // How the child ended, as soon as it has; nullopt before. Never waits.
  std::optional<Exit> reap();
  void signal_group(int signal) const;  // everybody in its process group; nothing once reaped

 private:
  pid_t pid_;
  io::Fd pidfd_;
  std::optional<Exit> exit_;
};

// Errors name the step that failed: "run /x/y: Exec format error". They leave nothing behind.
Result<Child> spawn(const SpawnSpec& spec);

// Searches as execvp does: a name with a slash is taken as it is. not_found / denied otherwise.
Result<std::string> find_executable(const std::string& name, const std::string& path);
// The file of this process's own program.
Result<std::string> own_executable();

}  // namespace lockstep::proc
