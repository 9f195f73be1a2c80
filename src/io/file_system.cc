// Names the local file systems.
#include "io/file_system.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>

namespace lockstep::io {

bool is_local_type(std::uint32_t type) {
  constexpr std::uint32_t kXfs = 0x58465342;  // linux/magic.h lacks these two
  constexpr std::uint32_t kZfs = 0x2fc12fc1;
  constexpr std::array<std::uint32_t, 8> kLocal = {
      EXT4_SUPER_MAGIC, BTRFS_SUPER_MAGIC, kXfs,        kZfs,
      F2FS_SUPER_MAGIC, TMPFS_MAGIC,       RAMFS_MAGIC, OVERLAYFS_SUPER_MAGIC};
  return std::find(kLocal.begin(), kLocal.end(), type) != kLocal.end();
}

// An unknown type counts as shared, which is the safe assumption.
bool is_local(const std::string& path) {
  struct statfs info {};
  return statfs(path.c_str(), &info) == 0 && is_local_type(static_cast<std::uint32_t>(info.f_type));
}

}  // namespace lockstep::io
