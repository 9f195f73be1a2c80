// One log file that the agent writes. A file that takes no more (full disk, quota, size limit, I/O
// error) is reported, once for all files, and its bytes are counted as lost; the job goes on.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::logs {

// Opens a log file, created or truncated, mode 0666 less the umask. It appends, so that a file
// emptied by a log rotation does not get a hole.
Result<io::Fd> open_log_file(const std::string& path);

// How many of `bytes` still go into a file with `room` bytes left. They end with a whole line. A
// first line that does not fit alone may go beyond the room, up to `most` bytes; where `most` is 0
// it waits for the next file.
std::size_t part_that_fits(std::string_view bytes, std::size_t room, std::size_t most);

// How far a line that has begun in a file may go beyond its limit before it is cut.
inline constexpr std::size_t kLongestLine = 64 << 10;

class LogFile {
 public:
  // A full file becomes PATH.1, and what was PATH.1 becomes PATH.2 ...; this many are kept.
  static constexpr int kOlder = 5;

  // max_size 0: the file grows for ever.
  static Result<std::unique_ptr<LogFile>> open(const std::string& path, std::uint64_t max_size = 0);
  ~LogFile();  // logs how much was lost
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

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
