#include "ssh/control_place.h"

#include "base/fnv.h"
#include "base/log.h"
#include "io/own_folders.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace lockstep::ssh {
namespace {

// A socket's path holds 107 bytes, and ssh adds a suffix of 17 bytes while it creates the socket.
constexpr std::size_t kMostFolder = 107 - 17 - sizeof("/lockstep/0123456789abcdef") + 2;

// The home comes last: it may be on a network file system without sockets.
Result<std::string> folder_in_home(const Error& why) {
  std::string path = io::state_folder() + "/ssh";
  if (path.size() >= kMostFolder + std::string_view("/lockstep").size()) return Failure(why);
  LOCKSTEP_TRY(io::make_folders(path));
  static bool told = false;
  if (!std::exchange(told, true)) log::warning("{}: connections are kept in {}", why.message, path);
  return path;
}

}  // namespace

Result<std::string> control_folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  struct stat info {};
  // Under su or sudo XDG_RUNTIME_DIR may still name another user's folder.
  if (runtime == nullptr || *runtime != '/' || std::string_view(runtime).size() >= kMostFolder ||
      // A user who can write to the folder could replace the sockets and read all traffic.
      stat(runtime, &info) != 0 || info.st_uid != geteuid()) {
    auto found = io::own_folder_in("/tmp", 0);
    if (found || found.error().code != Errc::denied) return found;
    return folder_in_home(found.error());
  }
  const std::string path = std::string(runtime) + "/lockstep";
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return fail_sys("make " + path, errno);
  if (lstat(path.c_str(), &info) != 0) return fail_sys("look at " + path, errno);
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0)
    return fail(
        Errc::denied,
        path + " must be a private folder (mode 0700) of yours: ssh connections are kept there",
        "remove the folder, or set XDG_RUNTIME_DIR to a folder of yours");
  return path;
}

Result<std::string> control_socket(const Target& target, std::string_view pins) {
  LOCKSTEP_TRY_ASSIGN(const std::string path, control_folder());
  std::string words = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", target.host, target.user.value_or(""),
                                  target.port.value_or(0), target.key_path, target.jump, pins);
  // A connection with looser checks must not be shared with a pinned target.
  if (target.host_keys == HostKeys::pinned) words += "\npinned";
  // Never change the format: all versions share masters by it.
  return fmt::format("{}/{:016x}", path, fnv1a(words));
}

}  // namespace lockstep::ssh
