// A standard stream of this process, made ready for the loop. Other processes (the user's shell)
// share its flags, so a pipe or terminal is opened anew to be non-blocking for us alone. A file is
// written through the given descriptor itself: what dup2() puts there later is written to.
#pragma once

#include "base/error.h"
#include "io/fd.h"

namespace lockstep::io {

class OwnStream {
 public:
  enum class Way { read, write };
  static Result<OwnStream> open(int fd, Way way);
  OwnStream(OwnStream&&) noexcept = default;
  OwnStream& operator=(OwnStream&&) noexcept = default;
  // Gives shared flags back that had to be changed.
  ~OwnStream();

  int fd() const { return fd_ ? fd_.get() : given_; }
  // False: a file or /dev/null, which never blocks and which a Watch does not take.
  bool pollable() const { return pollable_; }

 private:
  OwnStream(int given, Fd fd, bool pollable, int flags_before)
      : given_(given), fd_(std::move(fd)), pollable_(pollable), flags_before_(flags_before) {}

  int given_;  // not ours to close
  Fd fd_;      // none: a file
  bool pollable_;
  int flags_before_;  // -1: not changed
};

}  // namespace lockstep::io
