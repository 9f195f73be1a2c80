// A standard stream of this process, made ready for the loop. Other processes (the user's shell)
// share its flags, so a pipe or terminal is opened anew to be non-blocking for us alone.
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

  int fd() const { return fd_.get(); }
  // False: a file or /dev/null, which never blocks and which a Watch does not take.
  bool pollable() const { return pollable_; }

 private:
  OwnStream(Fd fd, bool pollable, int flags_before)
      : fd_(std::move(fd)), pollable_(pollable), flags_before_(flags_before) {}

  Fd fd_;
  bool pollable_;
  int flags_before_;  // -1: not changed
};

}  // namespace lockstep::io
