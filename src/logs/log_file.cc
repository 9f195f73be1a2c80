#include "logs/log_file.h"

#include "base/log.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace lockstep::logs {

Result<io::Fd> open_log_file(const std::string& path) {
  io::Fd fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666));
  if (!fd) return fail_sys("cannot open the log file " + path, errno);
  return fd;
}

Result<std::unique_ptr<LogFile>> LogFile::open(const std::string& path) {
  LOCKSTEP_TRY_ASSIGN(io::Fd fd, open_log_file(path));
  return std::unique_ptr<LogFile>(new LogFile(path, std::move(fd)));
}

LogFile::~LogFile() {
  if (lost_ != 0) log::info("{}: {} bytes of output could not be written", path_, lost_);
}

void LogFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_.get(), bytes.data(), bytes.size());
    if (put > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(put));
      continue;
    }
    if (put < 0 && errno == EINTR) continue;
    // Tried again with the next bytes: somebody may make room.
    const int reason = put < 0 ? errno : ENOSPC;
    const bool first = lost_ == 0;
    lost_ += bytes.size();
    if (first) {
      // With 64 workers one full disk is 128 full files: said once, the rest at info.
      static bool said = false;
      const auto level = std::exchange(said, true) ? log::Level::info : log::Level::error;
      if (log::enabled(level))
        log::write(level,
                   fmt::format(
                       "cannot write to {}: {}; the job goes on, log files lack what finds no room",
                       path_, errno_text(reason)));
    }
    return;
  }
}

}  // namespace lockstep::logs
