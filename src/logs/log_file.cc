// Writes and rotates one log file.
#include "logs/log_file.h"

#include "base/log.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace lockstep::logs {

Result<io::Fd> open_log_file(const std::string& path) {
  io::Fd fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666));
  if (!fd) return fail_sys("cannot open the log file " + path, errno);
  return fd;
}

std::size_t part_that_fits(std::string_view bytes, std::size_t room, std::size_t most) {
  if (bytes.size() <= room) return bytes.size();
  const std::size_t last = room == 0 ? bytes.npos : bytes.rfind('\n', room - 1);
  if (last != bytes.npos) return last + 1;
  bytes = bytes.substr(0, most);
  const std::size_t end = bytes.find('\n', room);
  return end == bytes.npos ? bytes.size() : end + 1;
}

Result<std::unique_ptr<LogFile>> LogFile::open(const std::string& path, std::uint64_t max_size) {
  LOCKSTEP_TRY_ASSIGN(io::Fd fd, open_log_file(path));
  return std::unique_ptr<LogFile>(new LogFile(path, std::move(fd), max_size));
}

LogFile::~LogFile() {
  if (lost_ != 0) log::info("{}: {} bytes of output could not be written", path_, lost_);
}

void LogFile::write(std::string_view bytes) {
  while (max_size_ != 0 && size_ + bytes.size() > max_size_) {
    const std::uint64_t room = max_size_ > size_ ? max_size_ - size_ : 0;
    const std::uint64_t longest = max_size_ + kLongestLine;
    // A line that has begun may exceed the limit by kLongestLine, instead of being torn between two
    // files.
    const bool begun = mid_line_ || size_ == 0;
    const std::size_t part =
        part_that_fits(bytes, room, begun && longest > size_ ? longest - size_ : 0);
    append(bytes.substr(0, part));
    bytes.remove_prefix(part);
    if (bytes.empty()) return;
    rotate();
  }
  append(bytes);
}

// Only the agent writes this file, so a rename loses nothing. The folder belongs to the worker's
// own user, who could write to any file in it anyway.
void LogFile::rotate() {
  const auto older = [this](int number) { return fmt::format("{}.{}", path_, number); };
  for (int number = kOlder; number > 1; --number)
    ::rename(older(number - 1).c_str(), older(number).c_str());  // older files may not exist yet
  auto next = ::rename(path_.c_str(), older(1).c_str()) == 0
                  ? open_log_file(path_)
                  : Result<io::Fd>(fail_sys("rename it", errno));
  size_ = 0;
  mid_line_ = false;
  if (next) {
    fd_ = std::move(*next);
    return;
  }
  log::warning("{} cannot be rotated and keeps growing: {}", path_, next.error().message);
  // Do not try again for each write: the limit is off from here on.
  max_size_ = 0;
}

void LogFile::append(std::string_view bytes) {
  if (bytes.empty()) return;
  mid_line_ = bytes.back() != '\n';
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_.get(), bytes.data(), bytes.size());
    if (put > 0) {
      size_ += static_cast<std::uint64_t>(put);
      bytes.remove_prefix(static_cast<std::size_t>(put));
      continue;
    }
    if (put < 0 && errno == EINTR) continue;
    // Later writes are tried again: space may have been freed by then.
    const int reason = put < 0 ? errno : ENOSPC;
    const bool first = lost_ == 0;
    lost_ += bytes.size();
    if (first) {
      // With 64 workers, one full disk means 128 full files. Only the first is logged as an error.
      static bool said = false;
      const auto level = std::exchange(said, true) ? log::Level::info : log::Level::error;
      if (log::enabled(level))
        log::write(level, fmt::format("cannot write to {}: {}; the job goes on, but output is "
                                      "missing from log files",
                                      path_, errno_text(reason)));
    }
    return;
  }
}

}  // namespace lockstep::logs
