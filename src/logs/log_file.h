// One log file written by the agent. If it cannot grow (full disk, quota, size limit, I/O error),
// this is reported once for all files, the lost bytes are counted, and the job goes on.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::logs {

// Opens a log file, created or truncated, with mode 0666 minus the umask. The file is opened for
// appending: if a log rotation empties it, no hole appears.
Result<io::Fd> open_log_file(const std::string& path);

// Returns how many of `bytes` go into a file with `room` bytes left. These bytes end with a whole
// line. A first line longer than the room may exceed it, up to `most` bytes. If `most` is 0, that
// line goes to the next file.
std::size_t part_that_fits(std::string_view bytes, std::size_t room, std::size_t most);

// Most bytes by which a line already begun may exceed the file's limit before it is cut.
inline constexpr std::size_t kLongestLine = 64 << 10;

class LogFile {
 public:
  // A full file becomes PATH.1, and PATH.1 becomes PATH.2 and so on. This many old files are kept.
  static constexpr int kOlder = 5;

  // max_size: 0 means no limit.
  static Result<std::unique_ptr<LogFile>> open(const std::string& path, std::uint64_t max_size = 0);
  ~LogFile();  // logs the number of lost bytes
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // Writes all bytes, rotating where needed. Never fails: see lost().
  void write(std::string_view bytes);
  std::uint64_t lost() const { return lost_; }

 private:
  LogFile(std::string path, io::Fd fd, std::uint64_t max_size)
      : path_(std::move(path)), fd_(std::move(fd)), max_size_(max_size) {}
  void append(std::string_view bytes);
  void rotate();

  std::string path_;
  io::Fd fd_;
  std::uint64_t max_size_;
  std::uint64_t size_ = 0;
  bool mid_line_ = false;
  std::uint64_t lost_ = 0;
};

}  // namespace lockstep::logs
