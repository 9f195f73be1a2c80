#include "agent/recorder_folder.h"

#include "agent/aid_folder.h"
#include "io/file_system.h"
#include "io/folder_names.h"
#include "io/unix_socket.h"
#include "logs/log_dir.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace lockstep::agent {
namespace {

// Names of files: recorder_rule.cc gives the first two to the workers.
constexpr const char* kPipeStem = "rank_";
constexpr const char* kDumpStem = "trace_rank_";
constexpr const char* kReadStem = ".read_rank_";
constexpr const char* kOwnStem = "timeout_rank_";

// A worker dies if it cannot make its pipe, and some file systems have no pipes. The local ones do.
Status try_pipe(const std::string& folder) {
  if (io::is_local(folder)) return {};
  const std::string path = folder + "/.pipe";
  if (mkfifo(path.c_str(), 0600) != 0) return fail_sys(path, errno);
  unlink(path.c_str());
  return {};
}

}  // namespace

Result<RecorderFolder> RecorderFolder::make(const std::string& attempt_dir) {
  // A folder of its own would cost the start of each job a tenth of a millisecond on ext4.
  if (io::is_local(attempt_dir)) return RecorderFolder(attempt_dir, false);
  LOCKSTEP_TRY_ASSIGN(const logs::RunDir temporary, logs::create_error_dir());
  if (Status made = try_pipe(temporary.path()); !made) {
    rmdir(temporary.path().c_str());
    return Failure(made.error());
  }
  return RecorderFolder(temporary.path(), true);
}

std::string RecorderFolder::file(const char* stem, int rank) const {
  return fmt::format("{}/{}{}", path_, stem, rank);
}

Status RecorderFolder::add_aid() {
  LOCKSTEP_TRY_ASSIGN(aid_, make_aid_folder());
  return {};
}

Result<io::Fd> RecorderFolder::dial(int rank) const {
  if (aid_.empty()) return fail(Errc::unavailable, "no aid");
  return io::connect_unix_now(aid_socket(aid_, rank));
}

bool RecorderFolder::ask(int rank) const {
  const std::string path = file(kPipeStem, rank) + ".pipe";
  // Without a reader this fails with ENXIO.
  const io::Fd pipe(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!pipe || fstat(pipe.get(), &info) != 0 || !S_ISFIFO(info.st_mode)) return false;
  // A full pipe holds requests that the worker has not read.
  return write(pipe.get(), "1", 1) == 1 || errno == EAGAIN;
}

void RecorderFolder::set_aside(int rank) const {
  rename(file(kDumpStem, rank).c_str(), file(kOwnStem, rank).c_str());
}

std::optional<RecorderFolder::State> RecorderFolder::look(int rank) const {
  struct stat info {};
  if (lstat(file(kDumpStem, rank).c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  // The worker may have set any time.
  return State{static_cast<std::size_t>(info.st_size),
               static_cast<std::uint64_t>(info.st_mtim.tv_sec) * 1'000'000'000U +
                   static_cast<std::uint64_t>(info.st_mtim.tv_nsec)};
}

Result<std::string> RecorderFolder::read(int rank, std::size_t limit) const {
  const std::string path = file(kDumpStem, rank);
  const io::Fd dump(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!dump || fstat(dump.get(), &info) != 0) return fail_sys(path, errno);
  const auto size = static_cast<std::size_t>(info.st_size);
  if (!S_ISREG(info.st_mode) || size > limit)
    return fail(Errc::corrupt, fmt::format("{}: no file, or too large", path));
  std::string bytes(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    const ssize_t count = ::read(dump.get(), bytes.data() + have, size - have);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    have += static_cast<std::size_t>(count);
  }
  bytes.resize(have);
  return bytes;
}

void RecorderFolder::done(int rank) const {
  rename(file(kDumpStem, rank).c_str(), file(kReadStem, rank).c_str());
}

void RecorderFolder::done(int rank, std::string_view bytes) const {
  const std::string path = file(kReadStem, rank);
  unlink(path.c_str());
  const io::Fd to(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  while (to && !bytes.empty()) {
    const ssize_t count = write(to.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    // A part of a dump would mislead whoever reads the evidence.
    if (count <= 0) return void(unlink(path.c_str()));
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string RecorderFolder::keep(const std::string& name) const {
  std::string prefix;
  for (const std::string& each : io::names_in(path_)) {
    if (!each.starts_with(kReadStem)) continue;
    const std::string to = fmt::format("{}/{}_rank_", path_, name);
    const std::string rank = each.substr(std::string_view(kReadStem).size());
    if (rename((path_ + "/" + each).c_str(), (to + rank).c_str()) == 0) prefix = to;
  }
  return prefix;
}

bool RecorderFolder::remove() const {
  bool own = false;
  for (const std::string& name : io::names_in(path_)) {
    if (name.starts_with(kReadStem) || (name.starts_with(kPipeStem) && name.ends_with(".pipe")))
      unlink((path_ + "/" + name).c_str());
    own = own || name.starts_with(kDumpStem) || name.starts_with(kOwnStem);
  }
  if (temporary_) rmdir(path_.c_str());
  if (!aid_.empty()) remove_aid_folder(aid_);
  return own;
}

}  // namespace lockstep::agent
