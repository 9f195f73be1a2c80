// An owned file descriptor. Every descriptor that Lockstep opens is close-on-exec.
#pragma once

#include "base/error.h"

#include <sys/resource.h>

#include <string>
#include <string_view>
#include <utility>

namespace lockstep::io {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};
Result<Pipe> make_pipe();  // both ends blocking, close-on-exec

Status set_nonblocking(int fd);

// Raises the limit of open files as far as allowed, up to 2^20. Returns the old limit, for
// children: they must not inherit the large one.
rlimit raise_open_files_limit();

// Reads a file, at most `limit` bytes (for files in /proc or /sys, or an error file).
Result<std::string> read_file(const std::string& path, std::size_t limit = 1 << 20);
// Creates or truncates a file with mode 0644. Never blocks: a FIFO without a reader is an error.
Status write_file(const std::string& path, std::string_view bytes);
// Writes all bytes to a blocking descriptor. `path` is for the error's text.
Status write_all(int fd, std::string_view bytes, const std::string& path);

}  // namespace lockstep::io
