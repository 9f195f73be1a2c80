#include "sync/confined.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace lockstep::sync {
namespace {

constexpr int kMostLinks = 40;  // the kernel's own limit (MAXSYMLINKS)
constexpr int kFolder = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool means_nothing_there(int number) {
  return number == ENOENT || number == ENOTDIR || number == ELOOP;
}

std::int64_t mtime_ns(const struct stat& info) {
  return std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

}  // namespace

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// O_PATH needs no read permission, and O_NOFOLLOW makes openat() refuse a link.
Result<Confined> Confined::open(const std::string& root) {
  io::Fd fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_sys(printable(root), errno);
  return Confined(std::move(fd));
}

Result<int> Confined::parent(std::string_view path, Way way) {
  const std::size_t slash = path.rfind('/');
  return folder(slash == std::string_view::npos ? "" : path.substr(0, slash), way);
}

Result<int> Confined::folder(std::string_view path, Way way) {
  std::size_t depth = 0;
  int at = root_.get();
  for (std::size_t from = 0; from < path.size(); ++depth) {
    const std::size_t end = std::min(path.find('/', from), path.size());
    const std::string_view part = path.substr(from, end - from);
    from = end + 1;
    // Sorted paths share most folders with the path before, which saves a system call for each.
    if (depth < open_.size() && open_[depth].name == part) {
      at = open_[depth].fd.get();
      continue;
    }
    open_.resize(std::min(depth, open_.size()));
    // EEXIST: another process made the folder meanwhile. openat() then checks the type.
    const std::string name(part);
    io::Fd next(openat(at, name.c_str(), kFolder));
    if (!next && errno == ENOENT && way == Way::make) {
      if (mkdirat(at, name.c_str(), 0777) != 0 && errno != EEXIST)
        return fail_sys("make " + printable(path), errno);
      next = io::Fd(openat(at, name.c_str(), kFolder));
    }
    if (!next) return fail_sys(printable(path), errno);
    at = next.get();
    open_.push_back({name, std::move(next)});
  }
  open_.resize(std::min(depth, open_.size()));
  return at;
}

Result<std::optional<struct stat>> Confined::look(std::string_view path) {
  const auto at = parent(path);
  if (!at) {
    // With a file or a link on the way, nothing can be at this path.
    if (means_nothing_there(at.error().sys)) return std::nullopt;
    return Failure(at.error());
  }
  struct stat info {};
  if (fstatat(*at, std::string(last_part(path)).c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0)
    return info;
  if (means_nothing_there(errno)) return std::nullopt;
  return fail_sys(printable(path), errno);
}

Result<std::optional<Entry>> Confined::entry(std::string_view path, const struct stat& info) {
  Entry entry{.path = std::string(path)};
  if (S_ISREG(info.st_mode)) {
    entry.executable = (info.st_mode & 0111) != 0;
    entry.size = static_cast<std::uint64_t>(info.st_size);
    entry.mtime_ns = mtime_ns(info);
    return entry;
  }
  if (!S_ISLNK(info.st_mode)) return std::nullopt;
  entry.kind = Kind::link;
  LOCKSTEP_TRY_ASSIGN(const int at, parent(path));
  std::array<char, kMostPath + 1> target;
  const ssize_t size =
      readlinkat(at, std::string(last_part(path)).c_str(), target.data(), target.size());
  if (size < 0) return fail_sys(printable(path), errno);
  entry.target.assign(target.data(), static_cast<std::size_t>(size));
  return entry;
}

Result<bool> Confined::leads_out(std::string_view path, std::string_view target) {
  if (target.starts_with('/')) return true;
  std::vector<std::string> at;  // resolved so far, free of links
  if (const std::size_t slash = path.rfind('/'); slash != std::string_view::npos)
    at = split(path.substr(0, slash), '/');
  std::vector<std::string> left;  // parts still to resolve, the next one last
  const auto walk = [&left](std::string_view text) {
    std::vector<std::string> parts = split(text, '/');
    left.insert(left.end(), parts.rbegin(), parts.rend());
  };
  walk(target);
  for (int links = 0; !left.empty();) {
    const std::string part = std::move(left.back());
    left.pop_back();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (at.empty()) return true;
      at.pop_back();
      continue;
    }
    // A link into .git could reach git's own settings and hooks, which name programs.
    if (is_of_git(part)) return true;
    at.push_back(part);
    const std::string here = join(at, "/");
    LOCKSTEP_TRY_ASSIGN(const auto info, look(here));
    if (!info || !S_ISLNK(info->st_mode)) continue;
    LOCKSTEP_TRY_ASSIGN(const auto link, entry(here, *info));
    // Refuse absolute links, and longer chains than the kernel follows.
    if (!link || link->target.starts_with('/') || ++links > kMostLinks) return true;
    at.pop_back();
    walk(link->target);
  }
  return false;
}

Result<std::uint64_t> Confined::free_bytes() const {
  struct statvfs info {};
  if (fstatvfs(root_.get(), &info) != 0) return fail_sys("look at the file system", errno);
  // f_bavail, not f_bfree: file systems reserve blocks for root.
  return std::uint64_t{info.f_bavail} * info.f_frsize;
}

Status Confined::remove(std::string_view path) {
  LOCKSTEP_TRY_ASSIGN(int at, parent(path));
  if (unlinkat(at, std::string(last_part(path)).c_str(), 0) != 0 && errno != ENOENT)
    return fail_sys("remove " + printable(path), errno);
  // unlinkat() fails with ENOTEMPTY at the first folder that still holds something.
  for (std::size_t slash = path.rfind('/'); slash != std::string_view::npos;
       slash = path.rfind('/')) {
    path = path.substr(0, slash);
    LOCKSTEP_TRY_ASSIGN(at, parent(path));
    if (unlinkat(at, std::string(last_part(path)).c_str(), AT_REMOVEDIR) != 0) break;
  }
  return {};
}

}  // namespace lockstep::sync
