// Names the local file systems.
#include "io/file_system.h"

#include "base/text.h"
#include "io/fd.h"

#include <fmt/core.h>

#include <errno.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <optional>
#include <set>

namespace lockstep::io {
namespace {

bool is_local_name(std::string_view type) {
  // rootfs is the root of a machine without a disk that has never left its first RAM disk.
  constexpr std::array<std::string_view, 11> kLocal = {
      "ext2", "ext3", "ext4", "btrfs", "xfs", "zfs", "f2fs", "tmpfs", "ramfs", "rootfs", "overlay"};
  return std::find(kLocal.begin(), kLocal.end(), type) != kLocal.end();
}

// "\040" for a space: mountinfo writes spaces, tabs, line breaks and backslashes in octal.
std::string without_escapes(std::string_view point) {
  std::string plain;
  for (std::size_t i = 0; i < point.size(); ++i) {
    const std::string_view digits = point.substr(i, 4);
    const bool escaped = digits.size() == 4 && digits[0] == '\\' &&
                         digits.find_first_not_of("01234567", 1) == std::string_view::npos;
    if (escaped) i += 3;
    plain +=
        escaped
            ? static_cast<char>((digits[1] - '0') * 64 + (digits[2] - '0') * 8 + (digits[3] - '0'))
            : point[i];
  }
  return plain;
}

// Takes the first name off a path. "": the path has no name left.
std::string take_name(std::string& path) {
  const std::size_t begin = std::min(path.find_first_not_of('/'), path.size());
  const std::size_t end = std::min(path.find('/', begin), path.size());
  std::string name = path.substr(begin, end - begin);
  path.erase(0, end);
  return name;
}

// Returns what a link leads to; nullopt, with errno: the path is no link.
std::optional<std::string> link_target(const std::string& path) {
  std::array<char, PATH_MAX> target;
  const ssize_t size = readlink(path.c_str(), target.data(), target.size());
  if (size < 0) return std::nullopt;
  return std::string(target.data(), static_cast<std::size_t>(size));
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

// "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw"
std::vector<Mount> mounts_of(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  std::set<std::int64_t> ids;
  for (const std::string& line : split(mountinfo, '\n')) {
    const auto words = split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (dash - words.begin() < 5 || words.end() - dash < 2) continue;
    const auto id = parse_int(words[0]);
    const auto parent = parse_int(words[1]);
    if (!id || !parent) continue;
    ids.insert(*id);
    mounts.push_back({*id, *parent, without_escapes(words[4]), is_local_name(*(dash + 1))});
  }
  for (Mount& mount : mounts)
    if (mount.parent == mount.id || !ids.contains(mount.parent)) mount.parent = -1;
  return mounts;
}

// Goes from mount to mount as the kernel does: at each name, to the mounts at this place of the
// mount that has been reached. A mount below a later one is never reached.
bool is_on_local(const std::vector<Mount>& mounts, std::string_view path) {
  const Mount* on = nullptr;
  std::size_t left = mounts.size();  // the list may change while it is read
  std::size_t end = 0;
  while (true) {
    const std::string_view at = end == 0 ? "/" : path.substr(0, end);
    const auto next = std::find_if(mounts.begin(), mounts.end(), [on, at](const Mount& each) {
      return each.point == at && each.parent == (on == nullptr ? -1 : on->id);
    });
    if (next != mounts.end() && left > 0) {
      --left;
      on = &*next;
      continue;  // mounts may lie on each other
    }
    if (end >= path.size() || path == "/") return on != nullptr && on->local;
    end = std::min(path.find('/', end + 1), path.size());
  }
}

// Walks along the path and its links, and looks at a name only once it is known to lie on a local
// file system. realpath() would ask the others, too.
bool is_local_without_asking(const std::string& path) {
  constexpr int kMostLinks = 40;  // as in the kernel
  const auto text = read_file("/proc/self/mountinfo", 8UL << 20);
  if (!text || !path.starts_with('/')) return false;
  const auto mounts = mounts_of(*text);
  std::string at;  // the part that has been walked, without links
  std::string rest = path;
  for (int links = 0; links <= kMostLinks;) {
    const std::string name = take_name(rest);
    if (name.empty()) return is_on_local(mounts, at);
    if (name == ".") continue;
    if (name == "..") {
      at.erase(std::min(at.rfind('/'), at.size()));
      continue;
    }
    const std::string next = fmt::format("{}/{}", at, name);
    if (!is_on_local(mounts, next)) return false;
    const auto target = link_target(next);
    if (!target) {
      if (errno == ENOENT) return true;  // nothing is mounted below
      if (errno != EINVAL) return false;
      at = next;
      continue;
    }
    ++links;
    if (target->starts_with('/')) at.clear();
    rest.insert(0, *target);
  }
  return false;
}

}  // namespace lockstep::io
