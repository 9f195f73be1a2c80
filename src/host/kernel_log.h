// The new lines of the kernel's log (/dev/kmsg), if this user may read the log.
#pragma once

#include "base/line_cutter.h"
#include "io/fd.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::host {

class KernelLog {
 public:
  // Begins behind the newest record. A log that cannot be read has no records.
  explicit KernelLog(const std::string& path = "/dev/kmsg");

  // Calls on_line for each new line of the log: the first one of a record has its head, others
  // begin with a blank. Never waits, and leaves what is too much to the next call.
  void read(const std::function<void(std::string_view)>& on_line);

 private:
  io::Fd fd_;
  std::optional<LineCutter> lines_;
};

}  // namespace lockstep::host
