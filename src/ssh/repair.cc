#include "ssh/repair.h"

#include "base/text.h"
#include "io/fd.h"
#include "io/file_lock.h"
#include "io/file_system.h"
#include "ssh/master.h"

#include <fmt/core.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace lockstep::ssh {
namespace {

using std::chrono::system_clock;

// A new file may belong to a push or a start that is under way.
constexpr std::chrono::minutes kMayBeInUse{1};
constexpr std::chrono::hours kStale{30 * 24};

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the file's stat if it is a regular file older than `age`. Links do not count.
std::optional<struct stat> old_file(const std::string& path, system_clock::time_point now,
                                    std::chrono::minutes age = kMayBeInUse) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  if (system_clock::from_time_t(info.st_mtime) > now - age) return std::nullopt;
  return info;
}

using FileId = std::pair<dev_t, ino_t>;

// Returns the executables of all running processes that this user may inspect.
std::set<FileId> running_programs() {
  std::set<FileId> files;
  for (const std::string& name : names_in("/proc")) {
    struct stat info {};
    // Compare device and inode: the path behind /proc/PID/exe may read differently.
    if (parse_int(name) && stat(("/proc/" + name + "/exe").c_str(), &info) == 0)
      files.insert({info.st_dev, info.st_ino});
  }
  return files;
}

bool is_hex(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void remove_file(const std::string& path, std::string_view what,
                 std::vector<std::string>& removed) {
  if (unlink(path.c_str()) == 0) removed.push_back(fmt::format("{} {}", what, path));
}

std::vector<std::string> remove_binaries(const std::string& bin_folder, const std::string& own_name,
                                         system_clock::time_point now, std::chrono::minutes age) {
  std::vector<std::string> removed;
  // Hosts may share a home, and another host may run a binary that no process runs here.
  if (!io::is_local(bin_folder)) return removed;
  const std::set<FileId> running = running_programs();
  for (const std::string& name : names_in(bin_folder)) {
    const std::string path = fmt::format("{}/{}", bin_folder, name);
    if (!name.starts_with("lockstep-") || name == own_name) continue;
    const auto file = old_file(path, now, age);
    if (!file || running.contains({file->st_dev, file->st_ino})) continue;
    // boot_command.cc chooses these names.
    const bool part =
        name.find(".part") != std::string::npos || name.find(".new") != std::string::npos;
    remove_file(path, part ? "a part of a binary" : "an unused binary", removed);
  }
  return removed;
}

}  // namespace

std::vector<std::string> remove_old_binaries(const std::string& bin_folder,
                                             const std::string& own_name,
                                             system_clock::time_point now) {
  return remove_binaries(bin_folder, own_name, now, kMayBeInUse);
}

void remove_stale_binaries(const std::string& own_path, system_clock::time_point now) {
  const std::size_t slash = own_path.rfind('/');
  // Only a pushed binary cleans up around itself. A build's folder is left alone.
  if (slash == std::string::npos || !own_path.substr(0, slash).ends_with("/.cache/lockstep/bin"))
    return;
  struct stat info {};
  if (stat(own_path.c_str(), &info) != 0 ||
      system_clock::from_time_t(info.st_mtime) < now - kMayBeInUse)
    return;
  remove_binaries(own_path.substr(0, slash), own_path.substr(slash + 1), now, kStale);
}

std::vector<std::string> remove_old_pushes(const std::string& push_folder,
                                           const std::string& own_name,
                                           system_clock::time_point now) {
  std::vector<std::string> removed;
  for (const std::string& name : names_in(push_folder)) {
    const std::string path = fmt::format("{}/{}", push_folder, name);
    if (name.starts_with("lockstep-") && name != own_name + ".gz" && old_file(path, now))
      remove_file(path, "a compressed binary", removed);
  }
  return removed;
}

// ssh creates a socket under a name with a random suffix, then links it to its final name. Only the
// holder of the lock creates sockets, so under the lock a socket without a listener is dead.
std::vector<std::string> remove_dead_sockets(const std::string& control_folder) {
  constexpr std::size_t kStem = 16;  // length of a name from control_place.cc
  std::vector<std::string> removed;
  for (const std::string& name : names_in(control_folder)) {
    const std::string path = fmt::format("{}/{}", control_folder, name);
    const std::string stem = name.substr(0, kStem);
    if (stem.size() != kStem || !is_hex(stem) || (name.size() > kStem && name[kStem] != '.'))
      continue;
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) continue;
    const std::string lock_path = fmt::format("{}/{}.lock", control_folder, stem);
    const auto lock = io::FileLock::take(lock_path, io::FileLock::IfHeld::fail);
    if (!lock || listens(path)) continue;
    remove_file(path, "the socket of a lost connection", removed);
  }
  return removed;
}

}  // namespace lockstep::ssh
