// Finds and makes the user's own folders.
#include "io/own_folders.h"

#include "base/log.h"
#include "base/text.h"
#include "io/fd.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace lockstep::io {
namespace {

std::string folder_from(const char* variable, const char* below_home) {
  const char* value = std::getenv(variable);
  // The XDG specification says to ignore relative paths.
  if (value != nullptr && *value == '/') return std::string(value) + "/lockstep";
  const std::string home = home_folder();
  return (home == "/" ? "" : home) + below_home + "/lockstep";
}

}  // namespace

std::string home_in_passwd(std::string_view passwd, unsigned int user) {
  for (const std::string& line : split(passwd, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() >= 6 && parse_int(fields[2]) == std::int64_t{user}) return fields[5];
  }
  return {};
}

// HOME may be missing or relative, for example in a service. getpwuid() could load a module of the
// machine's C library (see system_names.h), so read the file.
std::string home_folder() {
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return home;
  const auto passwd = read_file("/etc/passwd");
  const std::string found = passwd ? home_in_passwd(*passwd, geteuid()) : "";
  return found.starts_with('/') ? found : "/";
}

std::string state_folder() {
  return folder_from("XDG_STATE_HOME", "/.local/state");
}

std::string cache_folder() {
  return folder_from("XDG_CACHE_HOME", "/.cache");
}

std::string data_folder() {
  return folder_from("XDG_DATA_HOME", "/.local/share");
}

Result<std::string> own_folder_in(const std::string& place, unsigned int open_to) {
  constexpr int kMostNames = 9;
  const std::string usual = fmt::format("{}/lockstep-{}", place, geteuid());
  for (int number = 1; number <= kMostNames; ++number) {
    const std::string path = number == 1 ? usual : fmt::format("{}-{}", usual, number);
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return fail_sys("make " + path, errno);
    struct stat info {};
    // lstat(): a link of another user could lead to one of our folders.
    if (lstat(path.c_str(), &info) != 0) return fail_sys("look at " + path, errno);
    // Skip a folder of another user, or a folder open to others, instead of failing: any user can
    // create the usual name in /tmp.
    if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077 & ~open_to) != 0)
      continue;
    static bool told = false;
    if (number > 1 && !std::exchange(told, true))
      log::warning("{} is not this user's own folder: {} is used in its place", usual, path);
    return path;
  }
  return fail(Errc::denied,
              fmt::format("{} is not this user's own folder, nor are {}-2 to -{}", usual, usual,
                          kMostNames),
              "have one of them removed");
}

Status make_folders(const std::string& path) {
  struct stat info {};
  // The common case costs one call, and needs no right to look into the folders above.
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
  for (std::size_t at = 0; at != std::string::npos;) {
    at = path.find('/', at + 1);
    const std::string part = path.substr(0, at);
    // Mode 0700: state, keys and the output of jobs are for this user alone.
    if (mkdir(part.c_str(), 0700) == 0) continue;
    const int why = errno;
    // On an existing folder mkdir() may also fail with EACCES or EROFS.
    if (stat(part.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
    return fail_sys("make " + part, why);
  }
  return {};
}

}  // namespace lockstep::io
