// Replaces files through a draft and rename().
#include "io/replace_file.h"

#include "base/id.h"
#include "io/fail_write.h"
#include "io/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace lockstep::io {
namespace {

constexpr std::size_t kRandom =
    12;  // letters: impossible to guess, so no other user can plant a link there
// O_NOFOLLOW: in a shared folder another user may plant a link. O_NONBLOCK: or a FIFO.
constexpr int kFlags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
enum class Lasting { no, yes };

Result<Fd> open_file(const std::string& path, int flags) {
  Fd fd(open(path.c_str(), kFlags | flags, 0644));
  if (!fd && errno == ENOSPC) return fail_write(path, errno);
  if (!fd) return fail_sys("open " + path, errno);
  return fd;
}

// Some file systems report a full disk only at fsync().
Status write_to(int fd, const std::string& path, std::string_view bytes, Lasting lasting) {
  LOCKSTEP_TRY(write_all(fd, bytes, path));
  if (lasting == Lasting::yes && fsync(fd) != 0) return fail_write(path, errno);
  return {};
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// Some file systems cannot sync a folder. The record exists all the same, so ignore the error.
void sync_folder_of(const std::string& path) {
  const std::string folder = folder_of(path);
  if (const Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); fd) fsync(fd.get());
}

Status by_draft(const std::string& path, std::string_view bytes, Lasting lasting) {
  // The draft lies in the same folder, because rename() is atomic only within one file system.
  const std::string draft = path + "." + random_suffix(kRandom) + ".tmp";
  LOCKSTEP_TRY_ASSIGN(const Fd fd, open_file(draft, O_CREAT | O_EXCL));
  Status written = write_to(fd.get(), path, bytes, lasting);
  if (written && rename(draft.c_str(), path.c_str()) != 0)
    written = fail_sys("replace " + path, errno);
  if (!written) unlink(draft.c_str());
  if (written && lasting == Lasting::yes) sync_folder_of(path);
  return written;
}

// A full or failing disk, or a limit, is no reason to touch the old file.
bool can_be_replaced(int why) {
  // These say that a draft cannot be made or renamed here, not that the disk is at fault.
  constexpr std::array<int, 5> kNot = {EACCES, EPERM, EROFS, EBUSY, ENAMETOOLONG};
  return std::find(kNot.begin(), kNot.end(), why) == kNot.end();
}

// Reserves the space first: if there is none, the old bytes survive.
Status overwrite(const std::string& path, std::string_view bytes) {
  LOCKSTEP_TRY_ASSIGN(const Fd fd, open_file(path, 0));
  const auto size = static_cast<off_t>(bytes.size());
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return fail_sys("look at " + path, errno);
  if (size > 0 && fallocate(fd.get(), 0, 0, size) != 0 && errno != EOPNOTSUPP)
    return fail_write(path, errno);
  LOCKSTEP_TRY(write_all(fd.get(), bytes, path));
  if (info.st_size > size && ftruncate(fd.get(), size) != 0) return fail_sys("cut " + path, errno);
  return {};
}

// Reserves space by writing: bytes written once can be overwritten later, even on a full disk.
void take_spare_room(const std::string& spare) {
  const auto fd = open_file(spare, O_CREAT | O_EXCL);
  if (!fd) return;
  if (!write_to(fd->get(), spare, std::string(kSpareRoom, ' '), Lasting::yes))
    unlink(spare.c_str());
}

Status into_spare(const std::string& path, const std::string& spare, std::string_view bytes) {
  LOCKSTEP_TRY_ASSIGN(const Fd fd, open_file(spare, 0));
  LOCKSTEP_TRY(write_to(fd.get(), path, bytes, Lasting::yes));
  // The spare is longer than the record: cut it before it takes the record's name.
  if (ftruncate(fd.get(), static_cast<off_t>(bytes.size())) != 0)
    return fail_sys("cut " + spare, errno);
  if (rename(spare.c_str(), path.c_str()) != 0) return fail_sys("replace " + path, errno);
  sync_folder_of(path);
  return {};
}

// Returns whether the path must be written to: a device or FIFO must not become a file. In /dev and
// /proc, a link such as /dev/stdout stands for an open file: root could replace /dev/stdout itself.
bool is_written_to(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return true;
  if (lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return false;
  std::error_code failed;
  const std::string folder = std::filesystem::canonical(folder_of(path), failed).string();
  return folder == "/dev" || folder.starts_with("/proc/");
}

}  // namespace

Status replace_file(const std::string& path, std::string_view bytes) {
  if (is_written_to(path)) {
    // O_APPEND: the file behind /dev/stdout may already have output of the job.
    const Fd fd(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK));
    return fd ? write_all(fd.get(), bytes, path) : fail_sys("open " + path, errno);
  }
  Status replaced = by_draft(path, bytes, Lasting::no);
  if (replaced || can_be_replaced(replaced.error().sys)) return replaced;
  return overwrite(path, bytes) ? Status() : replaced;
}

Status keep_record(const std::string& path, std::string_view bytes) {
  return by_draft(path, bytes, Lasting::yes);
}

Status keep_record_with_spare(const std::string& path, std::string_view bytes) {
  const std::string spare = path + ".spare";
  Status kept = keep_record(path, bytes);
  if (kept) take_spare_room(spare);
  if (kept || kept.error().code != Errc::exhausted || bytes.size() > kSpareRoom) return kept;
  return into_spare(path, spare, bytes) ? Status() : kept;
}

}  // namespace lockstep::io
