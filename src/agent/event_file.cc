// Appends the events of a job to a file.
#include "agent/event_file.h"

#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep::agent {

Result<EventFile> EventFile::open(const std::string& path) {
  struct stat found {};
  const bool fifo = stat(path.c_str(), &found) == 0 && S_ISFIFO(found.st_mode);
  // With both ends here, a FIFO opens without a reader, keeps what it can until a reader comes, and
  // never raises SIGPIPE.
  const int mode = fifo ? O_RDWR : O_WRONLY | O_CREAT | O_APPEND;
  io::Fd fd(::open(path.c_str(), mode | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0644));
  if (!fd) return fail_sys("--events " + path, errno);
  return EventFile(path, std::move(fd));
}

void EventFile::write(std::string_view line) {
  kept_.append(line).push_back('\n');
  flush();
  if (kept_.size() > kMostKept) drop_oldest();
}

void EventFile::flush() {
  while (!kept_.empty()) {
    // A pipe takes a line of up to PIPE_BUF bytes whole or not at all.
    const std::size_t line = kept_.find('\n') + 1;
    const ssize_t put = ::write(fd_.get(), kept_.data(), line);
    if (put > 0) {
      kept_.erase(0, static_cast<std::size_t>(put));
      continue;
    }
    if (put < 0 && errno == EINTR) continue;
    const bool full_pipe = put < 0 && errno == EAGAIN;
    return warn(full_pipe ? "its reader is too slow" : strerror(put < 0 ? errno : EIO));
  }
}

// Half a line may be in the file already: its rest stays.
void EventFile::drop_oldest() {
  const std::size_t first = kept_.find('\n') + 1;
  const std::size_t second = kept_.find('\n', kept_.size() - kMostKept / 2) + 1;
  if (second > first) kept_.erase(first, second - first);
}

void EventFile::warn(const std::string& why) {
  if (warned_) return;
  warned_ = true;
  log::warning("--events {}: {}; the job goes on, and events may be lost", printable(path_), why);
}

}  // namespace lockstep::agent
