#include "sync/piece_files.h"

#include "base/text.h"
#include "io/fd.h"
#include "sync/record.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

namespace lockstep::sync {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;

timespec time_of(std::int64_t ns) {
  const std::int64_t rest = ((ns % kNsPerSecond) + kNsPerSecond) % kNsPerSecond;
  timespec time{};
  time.tv_sec = (ns - rest) / kNsPerSecond;
  time.tv_nsec = rest;
  return time;
}

// Returns the mode of the file that will be replaced, with its executable bits set or cleared.
// nullopt: no file is there.
std::optional<mode_t> mode_kept(int folder, const std::string& name, bool executable) {
  struct stat info {};
  if (fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode))
    return std::nullopt;
  const mode_t bits = info.st_mode & 0777;
  // A program is executable for all its readers.
  return executable ? bits | ((bits & 0444) >> 2) : bits & 0666;
}

Result<io::Fd> open_draft(int folder, const std::string& draft, const Piece& piece) {
  constexpr int kFlags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  const std::string what = "write " + printable(piece.entry.path);
  if (piece.offset == 0) {
    const mode_t mode = piece.entry.executable ? 0777 : 0666;
    // O_EXCL: never write through a file or link that someone put in the draft's place.
    io::Fd fd(openat(folder, draft.c_str(), kFlags | O_CREAT | O_EXCL, mode));
    if (!fd && errno == EEXIST) {  // left by an interrupted transfer
      unlinkat(folder, draft.c_str(), 0);
      fd = io::Fd(openat(folder, draft.c_str(), kFlags | O_CREAT | O_EXCL, mode));
    }
    if (!fd) return fail_sys(what, errno);
    return fd;
  }
  // Without O_CREAT: a later piece continues an existing draft.
  io::Fd fd(openat(folder, draft.c_str(), kFlags));
  if (!fd) return fail_sys(what, errno);
  struct stat info {};
  // The draft must be exactly as long as the pieces so far.
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<std::uint64_t>(info.st_size) != piece.offset)
    return fail(Errc::corrupt, printable(piece.entry.path) + " did not come in order");
  if (lseek(fd.get(), 0, SEEK_END) < 0) return fail_sys(what, errno);
  return fd;
}

Status write_bytes(int folder, const std::string& draft, const std::string& name,
                   const Piece& piece) {
  const std::string shown = printable(piece.entry.path);
  LOCKSTEP_TRY_ASSIGN(const io::Fd fd, open_draft(folder, draft, piece));
  LOCKSTEP_TRY(io::write_all(fd.get(), piece.bytes, shown));
  if (const auto mode = mode_kept(folder, name, piece.entry.executable))
    // Not fatal: the content counts, and some file systems have no modes.
    (void)fchmod(fd.get(), *mode);
  const std::array<timespec, 2> times = {timespec{0, UTIME_OMIT}, time_of(piece.entry.mtime_ns)};
  // The next comparison goes by size and time, so a wrong time would send the file again.
  if (futimens(fd.get(), times.data()) != 0) return fail_sys("write " + shown, errno);
  return {};
}

}  // namespace

std::string draft_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view folder = path.substr(0, slash == std::string_view::npos ? 0 : slash + 1);
  const std::string draft = std::string(folder) + ".lockstep-part-";
  return path.empty() ? draft : draft + record_name(last_part(path));
}

Result<std::string> read_piece(Confined& tree, std::string_view path, std::uint64_t offset,
                               std::uint64_t length) {
  const auto folder = tree.parent(path);
  if (!folder) return std::string();
  const io::Fd fd(openat(*folder, std::string(last_part(path)).c_str(),
                         O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  // ELOOP: a link has taken the file's place.
  if (!fd && (errno == ENOENT || errno == ELOOP)) return std::string();
  if (!fd) return fail_sys("read " + printable(path), errno);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::string();
  std::string bytes(static_cast<std::size_t>(length), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = pread(fd.get(), bytes.data() + done, bytes.size() - done,
                              static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_sys("read " + printable(path), errno);
    // The file became shorter since the listing. The caller compares the lengths.
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

Status write_piece(Confined& tree, const Piece& piece) {
  const std::string& path = piece.entry.path;
  LOCKSTEP_TRY(check_path(path));
  LOCKSTEP_TRY_ASSIGN(const int folder, tree.parent(path, Confined::Way::make));
  const std::string name(last_part(path));
  const std::string draft(last_part(draft_of(path)));
  Status written;
  if (piece.entry.kind == Kind::link) {
    unlinkat(folder, draft.c_str(), 0);
    if (symlinkat(piece.entry.target.c_str(), folder, draft.c_str()) != 0)
      written = fail_sys("write " + printable(path), errno);
  } else {
    written = write_bytes(folder, draft, name, piece);
  }
  const bool whole =
      piece.entry.kind == Kind::link || piece.offset + piece.bytes.size() == piece.entry.size;
  if (written && whole && renameat(folder, draft.c_str(), folder, name.c_str()) != 0)
    written = fail_sys("write " + printable(path), errno);
  // A later piece must not continue a damaged draft.
  if (!written) unlinkat(folder, draft.c_str(), 0);
  return written;
}

}  // namespace lockstep::sync
