// A standard stream of this process for use on the loop. Other processes (the user's shell) share
// its flags, so a pipe or terminal is opened a second time, to be non-blocking for us alone. A file
// is used through the given descriptor itself, so a later dup2() onto that descriptor takes effect.
#pragma once

#include "base/error.h"
#include "io/fd.h"

namespace lockstep::io {

// Returns whether a Watch takes the descriptor because it is a pipe or a socket, as a connection to
// a client is. epoll refuses a file and /dev/null.
bool is_pipe_or_socket(int fd);

class OwnStream {
 public:
  enum class Way { read, write };
  static Result<OwnStream> open(int fd, Way way);
  OwnStream(OwnStream&&) noexcept = default;
  OwnStream& operator=(OwnStream&&) noexcept = default;
  // Restores shared flags that had to be changed.
  ~OwnStream();

  int fd() const { return fd_ ? fd_.get() : given_; }
  // false: a file or /dev/null. Neither blocks, and a Watch accepts neither.
  bool pollable() const { return pollable_; }

 private:
  OwnStream(int given, Fd fd, bool pollable, int flags_before)
      : given_(given), fd_(std::move(fd)), pollable_(pollable), flags_before_(flags_before) {}

  int given_;  // borrowed, never closed here
  Fd fd_;      // empty: a file
  bool pollable_;
  int flags_before_;  // -1: unchanged
};

}  // namespace lockstep::io
