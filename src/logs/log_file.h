// One log file that the agent writes. A file that takes no more (full disk, quota, size limit, I/O
// error) is reported, once for all files, and its bytes are counted as lost; the job goes on.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::logs {

// Created or truncated, 0666 less the umask. Appends, so that a file emptied by a log rotation does
// not get a hole.
Result<io::Fd> open_log_file(const std::string& path);

class LogFile {
 public:
  static Result<std::unique_ptr<LogFile>> open(const std::string& path);
  ~LogFile();  // says how much was lost
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  void write(std::string_view bytes);
  std::uint64_t lost() const { return lost_; }

 private:
  LogFile(std::string path, io::Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  io::Fd fd_;
  std::uint64_t lost_ = 0;
};

}  // namespace lockstep::logs
