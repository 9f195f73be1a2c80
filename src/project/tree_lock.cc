#include "project/tree_lock.h"

#include "base/text.h"
#include "hosts/wait_words.h"
#include "io/own_folders.h"
#include "proc/signals.h"
#include "sync/record.h"

#include <fmt/core.h>

#include <unistd.h>

#include <array>
#include <chrono>
#include <map>
#include <utility>

namespace lockstep::project {
namespace {

// flock() cannot wait for a lock and a signal at once, so the lock is tried every 50 ms.
constexpr std::chrono::milliseconds kLookEvery{50};

std::string folder_of_locks() {
  return io::state_folder() + "/locks";
}

std::string lock_path(const std::string& what) {
  return folder_of_locks() + "/" + sync::record_name(what);
}

std::string path_of_back(const std::string& root) {
  return lock_path("back\n" + root);
}

// Returns the lock file of a tree on a host. Two names of a host count as two trees: without a
// connection, nothing tells that both mean the same host.
std::string path_of_tree(const hosts::HostPlace& host, const std::string& destination) {
  const ssh::Target& target = host.target;
  return lock_path(fmt::format("sync\n{}\n{}\n{}\n{}\n{}", host.here ? "" : target.host,
                               target.user.value_or(""), target.port.value_or(0), target.jump,
                               destination));
}

// Returns " (process 123)", or "" if the holder has not written its number yet.
std::string holder_of(int fd) {
  std::array<char, 32> text;
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  const auto pid = parse_int(strip({text.data(), static_cast<std::size_t>(size < 0 ? 0 : size)}));
  return pid ? fmt::format(" (process {})", *pid) : "";
}

}  // namespace

Status TreeLocks::lock(const std::string& path, const std::string& what, const Tell& tell) {
  // A sync without a lock is better than no sync, so go on if the state folder cannot be used.
  if (!io::make_folders(folder_of_locks())) return {};
  auto lock = io::FileLock::open(path);
  if (!lock) return {};
  const auto began = std::chrono::steady_clock::now();
  std::chrono::seconds due{0};
  while (true) {
    const auto taken = lock->try_lock();
    // The file system has no locks.
    if (!taken) return {};
    if (*taken) break;
    if (std::chrono::steady_clock::now() - began >= due) {
      due += hosts::next_notice(due);
      if (tell)
        tell(fmt::format("{}: another lockstep{} uses this tree; waiting; Ctrl-C ends this command",
                         what, holder_of(lock->fd())));
    }
    if (const int number = proc::take_stop_signal(kLookEvery); number != 0)
      return tl::make_unexpected(
          Error{Errc::canceled, "stopped while waiting for another lockstep", {}, number});
  }
  // For the messages of waiting processes only. The kernel drops the lock with the process, so a
  // stale number does no harm.
  const std::string pid = fmt::format("{}\n", getpid());
  if (ftruncate(lock->fd(), 0) == 0) (void)!pwrite(lock->fd(), pid.data(), pid.size(), 0);
  held_.push_back(std::move(*lock));
  return {};
}

// Locks in the order of the paths, so that two processes never wait for each other. The map also
// drops a host that was given twice, which would wait for itself.
Status TreeLocks::take(const std::vector<hosts::HostPlace>& hosts, const std::string& destination,
                       const Tell& tell) {
  std::map<std::string, std::string> paths;
  for (const hosts::HostPlace& host : hosts)
    paths.emplace(path_of_tree(host, destination), host.name);
  for (const auto& [path, name] : paths)
    LOCKSTEP_TRY(lock(path, "sync to " + name, tell));
  return {};
}

Status TreeLocks::take_back(const std::string& root, const Tell& tell) {
  return lock(path_of_back(root), "bringing files back to " + printable(root), tell);
}

bool TreeLocks::is_brought_back(const std::string& root) {
  return io::FileLock::is_held(path_of_back(root)).value_or(false);
}

}  // namespace lockstep::project
