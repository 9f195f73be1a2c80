// Detects a full disk from statvfs().
#include "agent/full_disk.h"

#include "base/text.h"

#include <fmt/core.h>

#include <unistd.h>

namespace lockstep::agent {
namespace {
// Threshold for "full". Another process may have freed a little space since the worker's write
// failed.
constexpr std::uint64_t kLittle = 64 << 10;
}  // namespace

std::optional<std::string> full_disk_note(const struct statvfs& disk, bool privileged,
                                          const std::string& directory) {
  // Root may use the reserved blocks, other users may not.
  const std::uint64_t blocks = privileged ? disk.f_bfree : disk.f_bavail;
  const std::uint64_t files = privileged ? disk.f_ffree : disk.f_favail;
  const bool no_files = disk.f_files != 0 && files == 0;  // some file systems count none
  if (disk.f_blocks == 0 || (blocks * disk.f_frsize >= kLittle && !no_files)) return std::nullopt;
  return fmt::format("the disk of the log directory {} is full: no {} left", printable(directory),
                     no_files ? "inodes are" : "space is");
}

std::optional<std::string> full_disk_note(const std::string& directory) {
  struct statvfs disk {};
  if (statvfs(directory.c_str(), &disk) != 0) return std::nullopt;
  return full_disk_note(disk, geteuid() == 0, directory);
}

}  // namespace lockstep::agent
