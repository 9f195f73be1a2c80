#include "agent/profile_folder.h"

#include "codec/kineto.h"
#include "io/fd.h"
#include "io/file_system.h"
#include "io/folder_names.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace lockstep::agent {
namespace {

constexpr int kMostSwept = 256;  // the start of a job waits for the sweep

bool is_own_profile_folder(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid();
}

// Returns whether the folder's agent has ended: its socket is there, and no process has it open. A
// folder without a socket may belong to an agent that stands between mkdir() and bind().
bool is_left_behind(const std::string& folder) {
  const io::Fd probe(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  const std::size_t size = profile_address(folder + "/" + std::string(kProfileSocket), address);
  return probe &&
         connect(probe.get(), reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(size)) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace

std::vector<std::string> socket_places() {
  std::vector<std::string> found;
  if (const char* own = std::getenv("TMPDIR"); own != nullptr && *own == '/')
    found.emplace_back(own);
  found.emplace_back("/tmp");
  return found;
}

std::size_t profile_address(const std::string& path, sockaddr_un& into) {
  into = {};
  into.sun_family = AF_UNIX;
  const std::size_t size = std::min(path.size(), sizeof into.sun_path - 1);
  std::memcpy(into.sun_path, path.data(), size);
  return offsetof(sockaddr_un, sun_path) + size + 1;
}

void sweep_profile_folders(const std::string& place) {
  // The socket of an agent on another host refuses connections from here, too.
  if (!io::is_local(place)) return;
  int seen = 0;
  for (const std::string& name : io::names_in(place)) {
    const std::string path = fmt::format("{}/{}", place, name);
    if (!name.starts_with(kProfileFolderHead) || path.size() > codec::kMostKinetoFolder) continue;
    if (++seen > kMostSwept) return;
    if (is_own_profile_folder(path) && is_left_behind(path)) remove_profile_folder(path);
  }
}

void remove_profile_folder(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

}  // namespace lockstep::agent
