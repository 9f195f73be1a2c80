#include "agent/aid_folder.h"

#include "agent/profile_folder.h"
#include "base/id.h"
#include "io/file_system.h"
#include "io/replace_file.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/stat.h>

#include <filesystem>
#include <system_error>

namespace lockstep::agent {
namespace {

// The address of a Unix socket has at most 107 bytes. A rank has up to seven digits.
constexpr std::size_t kMostFolder = 107 - 8;

}  // namespace

Result<std::string> make_aid_folder() {
  for (const std::string& place : socket_places()) {
    const std::string folder = fmt::format("{}/lockstep-aid-{}", place, random_suffix(8));
    // A colon would end the entry of PYTHONPATH.
    if (folder.size() > kMostFolder || folder.find(':') != folder.npos || !io::is_local(place))
      continue;
    if (mkdir(folder.c_str(), 0700) != 0) return fail_sys(folder, errno);
    if (Status written = io::replace_file(folder + "/sitecustomize.py", kRecorderAid); !written) {
      remove_aid_folder(folder);
      return Failure(written.error());
    }
    return folder;
  }
  return fail(Errc::unavailable, "no local folder with a short path for sockets: set TMPDIR");
}

std::string aid_socket(const std::string& folder, int rank) {
  return fmt::format("{}/{}", folder, rank);
}

void remove_aid_folder(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

}  // namespace lockstep::agent
