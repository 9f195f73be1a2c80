#include "agent/aid_folder.h"

#include "agent/profile_folder.h"
#include "base/id.h"
#include "io/file_system.h"
#include "io/own_folders.h"
#include "io/replace_file.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace lockstep::agent {
namespace {

// The address of a Unix socket has at most 107 bytes. A rank has up to seven digits.
constexpr std::size_t kMostFolder = 107 - 8;

// A user who may rename the aid folder could put code into a new one, and the ranks would run it.
bool is_safe(const std::string& place) {
  struct stat info {};
  if (stat(place.c_str(), &info) != 0) return false;
  const bool shared = (info.st_mode & 022) != 0 && (info.st_mode & S_ISVTX) == 0;
  return !shared && (info.st_uid == 0 || info.st_uid == geteuid());
}

Result<std::string> make_in(const std::string& place) {
  // The folder above stays after the job. A program that still has the path in PYTHONPATH would run
  // the code of another user who makes a folder of this name.
  LOCKSTEP_TRY_ASSIGN(const std::string own, io::own_folder_in(place, 0055));
  std::string folder = fmt::format("{}/aid-{}", own, random_suffix(8));
  if (folder.size() > kMostFolder) return fail(Errc::unavailable, folder + ": too long a path");
  if (mkdir(folder.c_str(), 0700) != 0) return fail_sys(folder, errno);
  if (Status written = io::replace_file(folder + "/sitecustomize.py", kRecorderAid); !written) {
    remove_aid_folder(folder);
    return Failure(written.error());
  }
  return folder;
}

}  // namespace

Result<std::string> make_aid_folder() {
  Error problem;
  problem.code = Errc::unavailable;
  problem.message = "no local folder for sockets that only this user can change: set TMPDIR";
  for (const std::string& place : socket_places()) {
    // A colon would end the entry of PYTHONPATH.
    if (place.find(':') != place.npos || !io::is_local_without_asking(place) || !is_safe(place))
      continue;
    auto made = make_in(place);
    if (made) return made;
    problem = made.error();
  }
  return Failure(problem);
}

std::string aid_socket(const std::string& folder, int rank) {
  return fmt::format("{}/{}", folder, rank);
}

void remove_aid_folder(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

}  // namespace lockstep::agent
