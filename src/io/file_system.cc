// Names the local file systems.
#include "io/file_system.h"

#include "base/text.h"

#include <fmt/core.h>

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <vector>

namespace lockstep::io {
namespace {

bool is_local_name(std::string_view type) {
  constexpr std::array<std::string_view, 10> kLocal = {"ext2", "ext3", "ext4",  "btrfs", "xfs",
                                                       "zfs",  "f2fs", "tmpfs", "ramfs", "overlay"};
  return std::find(kLocal.begin(), kLocal.end(), type) != kLocal.end();
}

}  // namespace

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

// "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw"
Devices local_devices(std::string_view mountinfo) {
  Devices devices;
  for (const std::string& line : split(mountinfo, '\n')) {
    const auto words = split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 3 || words.end() - dash < 2 || !is_local_name(*(dash + 1))) continue;
    const std::size_t colon = words[2].find(':');
    if (colon == std::string::npos) continue;
    const auto major = parse_int(std::string_view(words[2]).substr(0, colon));
    const auto minor = parse_int(std::string_view(words[2]).substr(colon + 1));
    if (major && minor) devices.insert(fmt::format("{:02x}:{:02x}", *major, *minor));
  }
  return devices;
}

}  // namespace lockstep::io
