// The file of --events: a line of JSON for each event. A file that takes no more bytes costs the
// job one warning and nothing else.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::agent {

class EventFile {
 public:
  // Opens or creates the file, and appends to it. Never waits for the reader of a FIFO.
  static Result<EventFile> open(const std::string& path);

  // Writes a line. Lines that a full FIFO or disk refuses wait for the next call, at most kMostKept
  // bytes of them; then the oldest are dropped. Never blocks on a pipe.
  void write(std::string_view line);

 private:
  static constexpr std::size_t kMostKept = 256UL << 10;

  EventFile(std::string path, io::Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  void flush();
  void drop_oldest();
  void warn(const std::string& why);

  std::string path_;
  io::Fd fd_;
  std::string kept_;  // not written yet: whole lines, but for the first, which may be half written
  bool warned_ = false;
};

}  // namespace lockstep::agent
