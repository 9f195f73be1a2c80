#include "sync/host_place.h"

#include "base/text.h"
#include "io/fd.h"

#include <fmt/core.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <memory>
#include <utility>

namespace lockstep::sync {
namespace {
constexpr std::size_t kMostRecord = 1UL << 30;
constexpr std::time_t kDraftsLiveFor = 3600;  // seconds since the last write

// Removes drafts of interrupted transfers. A running transfer keeps writing, so its drafts are
// younger.
void drop_old_drafts(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(folder.c_str()), closedir);
  if (!listing) return;
  const int fd = dirfd(listing.get());
  while (const dirent* found = readdir(listing.get())) {
    struct stat info {};
    if (fstatat(fd, found->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(info.st_mode) &&
        std::time(nullptr) - info.st_mtime > kDraftsLiveFor)
      unlinkat(fd, found->d_name, 0);
  }
}

}  // namespace

std::string drafts_for(const std::string& place, const std::string& record) {
  std::string folder = record + ".drafts";
  struct stat here {};
  struct stat there {};
  // Not fatal: drafts are then written beside the files.
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return "";
  if (stat(folder.c_str(), &here) != 0 || stat(place.c_str(), &there) != 0 ||
      here.st_dev != there.st_dev)
    return "";
  drop_old_drafts(folder);
  return folder;
}

std::optional<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (!real) return std::nullopt;
  return std::string(real.get());
}

bool lies_in(std::string_view path, std::string_view folder) {
  return path == folder || folder == "/" ||
         (path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/');
}

Result<std::string> wanted_place(std::string destination, const std::string& home) {
  const std::string shown = printable(destination);
  if (destination == "~" || destination.starts_with("~/")) destination.erase(0, 2);
  while (destination.size() > 1 && destination.ends_with('/'))
    destination.pop_back();
  for (const std::string& part : split(destination, '/'))
    if (part == ".." || part == ".")
      return fail(Errc::invalid_input,
                  fmt::format("{} must be a plain path, without '.' and '..'", shown));
  // A sync removes files, so the place must be a folder of its own.
  if (destination.empty() || destination == "/")
    return fail(Errc::invalid_input,
                fmt::format("{} would be all of the home or the machine", shown),
                "name a folder in it");
  return destination.starts_with('/') ? destination : home + "/" + destination;
}

Result<std::string> find_place(const std::string& destination, const std::string& home) {
  LOCKSTEP_TRY_ASSIGN(const std::string wanted, wanted_place(destination, home));
  auto real = real_path(wanted);
  if (!real) return fail_sys(printable(wanted), errno);
  return std::move(*real);
}

std::string record_path(const HostFolders& folders, const std::string& place) {
  return folders.records + "/" + record_name(place);
}

Result<Record> read_record(const HostFolders& folders, const std::string& place) {
  LOCKSTEP_TRY_ASSIGN(const std::string bytes,
                      io::read_file(record_path(folders, place), kMostRecord));
  LOCKSTEP_TRY_ASSIGN(Record record, decode_record(bytes));
  // Two places may have the same record_name(), which is a 64-bit hash.
  if (record.place != place) return fail(Errc::corrupt, "the record is of another place");
  return record;
}

Status check_owner(const Record& record, const Owner& owner, const std::string& place) {
  // A place without a record has no owner yet.
  if (record.place.empty() || same_owner(record.owner, owner)) return {};
  const std::string theirs = owner_text(record.owner);
  const std::string ours = owner_text(owner);
  return fail(
      Errc::already_exists,
      fmt::format("{} holds the tree of {}, and this is the tree of {}{}", printable(place), theirs,
                  ours, theirs == ours ? " on another machine or of another user" : ""),
      "name another place with sync SRC:DST, run --sync SRC:DST or install --project SRC:DST; "
      "sync --force and run --force take over this place");
}

Result<Record> read_own_record(const HostFolders& folders, const std::string& place,
                               const Owner& owner) {
  LOCKSTEP_TRY_ASSIGN(Record record, read_record(folders, place));
  if (!same_owner(record.owner, owner))
    return fail(Errc::already_exists, fmt::format("{} was taken over by {} in the meantime",
                                                  printable(place), owner_text(record.owner)));
  return record;
}

}  // namespace lockstep::sync
