// Starts child processes without copying memory, and reports their end through a pidfd. A child
// begins with default signal dispositions, an empty mask, a session of its own (unless told
// otherwise) and no descriptor above 2 (above 3, if a third one is given). The child dies with the
// thread that started it, so call spawn() from the main thread only.
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
  std::string executable;  // a path; PATH is not searched (see find_executable)
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "NAME=value"
  std::string folder;            // working directory; empty: that of this process
  int stdin_fd = -1;             // -1: this process's own
  int stdout_fd = -1;
  int stderr_fd = -1;
  int third_fd = -1;                 // becomes descriptor 3; -1: none
  std::vector<int> cpus;             // CPUs to bind to; empty: no change
  bool own_session = true;           // false: the child may use this process's terminal
  bool die_with_parent = true;       // SIGKILL when the starting thread ends
  int cgroup_procs_fd = -1;          // an open cgroup.procs to enter before exec
  int mount_namespace_fd = -1;       // entered before exec
  std::optional<rlimit> open_files;  // RLIMIT_NOFILE to restore
};

struct Exit {
  int code = 0;    // exit status, if signal == 0
  int signal = 0;  // the signal that killed the child, or 0
  bool core_dumped = false;

  bool ok() const { return code == 0 && signal == 0; }
  int python_code() const { return signal != 0 ? -signal : code; }
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};

// A started child. Passive: the owner watches pidfd() and calls reap() when it turns readable. The
// pid is never signalled after reaping.
class Child {
 public:
  Child(pid_t pid, io::Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid() const { return pid_; }  // as `ps` shows it; still valid for messages after the end
  int pidfd() const { return pidfd_.get(); }
  bool alive() const { return !exit_.has_value(); }  // not yet reaped
  const std::optional<Exit>& exit() const { return exit_; }

  // Returns how the child ended. nullopt: it still runs. Never blocks.
  std::optional<Exit> reap();
  void signal_group(int signal) const;  // signals the whole process group; does nothing once reaped

 private:
  pid_t pid_;
  io::Fd pidfd_;
  std::optional<Exit> exit_;
};

// Starts the child. An error names the failed step ("run /x/y: Exec format error"), and nothing is
// left behind.
Result<Child> spawn(const SpawnSpec& spec);

// Searches like execvp(): a name with a slash is returned as is. Fails with not_found or denied.
Result<std::string> find_executable(const std::string& name, const std::string& path);
// Returns the file of this process's program.
Result<std::string> own_executable();

}  // namespace lockstep::proc
