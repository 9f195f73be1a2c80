// Allows one sync at a time per tree, on hosts or here, among this user's processes on this
// machine. The lock of the host's record keeps clients on other machines apart.
#pragma once

#include "base/error.h"
#include "hosts/host_link.h"
#include "io/file_lock.h"

#include <functional>
#include <string>
#include <vector>

namespace lockstep::project {

// Holds locks until destruction or the end of the process. Locks nothing if the state folder cannot
// hold locks (read-only, or a file system without locks).
class TreeLocks {
 public:
  // Called with words for a person while another process has the lock: at once, then after the
  // pauses of next_notice().
  using Tell = std::function<void(const std::string& text)>;

  // Locks the trees at `destination` of these hosts. Waits as long as other processes hold the
  // locks. canceled: a signal came meanwhile, whose number is in Error::sys. The signals of
  // proc::handled_signals() must be blocked.
  Status take(const std::vector<hosts::HostPlace>& hosts, const std::string& destination,
              const Tell& tell);

  // Locks a folder of this machine into which files are brought back. Waits like take().
  Status take_back(const std::string& root, const Tell& tell);

  // Returns whether a process is bringing files back into this folder.
  static bool is_brought_back(const std::string& root);

 private:
  Status lock(const std::string& path, const std::string& what, const Tell& tell);

  std::vector<io::FileLock> held_;
};

}  // namespace lockstep::project
