// Writes to a descriptor that other processes share, without blocking.
#include "logs/console_sink.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

namespace lockstep::logs {
namespace {
// A terminal that poll() reports as writable takes this many bytes without blocking.
constexpr std::size_t kTerminalRoom = 256;

// Errors after which a later write may succeed.
bool disk_trouble(int reason) {
  return reason == ENOSPC || reason == EDQUOT || reason == EFBIG || reason == EIO;
}
}  // namespace

ConsoleSink::ConsoleSink(io::Loop& loop, int fd, const Console::Options& options)
    : loop_(loop),
      fd_(fd),
      kind_(kind_of(fd, options.reopen, own_)),
      high_water_(options.high_water),
      low_water_(options.low_water),
      broken_(kind_ == Kind::gone) {}

ConsoleSink::Kind ConsoleSink::kind_of(int fd, bool reopen, io::Fd& own) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return Kind::gone;
  // MSG_DONTWAIT makes a single send() non-blocking, so a socket needs no flag.
  if (S_ISSOCK(info.st_mode)) return Kind::socket;
  const bool terminal = S_ISCHR(info.st_mode) && isatty(fd) == 1;
  if (!S_ISFIFO(info.st_mode) && !terminal) return Kind::plain;
  if (!reopen) return Kind::polled;
  // A second open file description of the same pipe or terminal has its own flags: O_NONBLOCK there
  // does not disturb the user's shell.
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  own = io::Fd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  return own ? Kind::own : Kind::polled;
}

void ConsoleSink::attach(ConsoleSource& source) {
  sources_.push_back(&source);
  if (paused_) source.on_pause(true);
}

void ConsoleSink::detach(ConsoleSource& source) {
  std::erase(sources_, &source);
  if (mid_line_of_ == &source) mid_line_of_ = nullptr;
}

ByteQueue& ConsoleSink::begin(ConsoleSource* source, bool takes_over) {
  if (mid_line_ && (source == nullptr || mid_line_of_ != source)) {
    // End the other source's line first. A source that begins with '\r' overwrites the line
    // instead.
    if (mid_line_of_ != nullptr) mid_line_of_->on_cut();
    if (!takes_over) queue_.append("\n");
    mid_line_ = false;
  }
  return queue_;
}

void ConsoleSink::end(ConsoleSource* source, bool mid_line) {
  mid_line_ = mid_line;
  mid_line_of_ = mid_line ? source : nullptr;
  if (broken_) {
    queue_.clear();
    return;
  }
  // A blocked sink is flushed by its watch: trying again here would cost a system call per line.
  if (!blocked_) flush();
  // Pause the readers: workers then block on their full pipes, as they would with a slow terminal.
  // Memory stays bounded.
  if (!paused_ && queue_.size() > high_water_) set_paused(true);
}

long ConsoleSink::write_some(std::string_view bytes) const {
  switch (kind_) {
    case Kind::own:
      return write(own_.get(), bytes.data(), bytes.size());
    case Kind::socket:
      return send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    case Kind::polled: {
      pollfd room{fd_, POLLOUT, 0};
      if (poll(&room, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
      }
      // A writable pipe takes PIPE_BUF bytes without blocking.
      const std::size_t most = isatty(fd_) == 1 ? kTerminalRoom : std::size_t{PIPE_BUF};
      return write(fd_, bytes.data(), std::min(bytes.size(), most));
    }
    case Kind::plain:
    case Kind::gone:
      break;
  }
  return write(fd_, bytes.data(), bytes.size());
}

void ConsoleSink::flush() {
  bool full = false;
  while (!queue_.empty() && !full) {
    const long put = write_some(queue_.view());
    if (put > 0) {
      queue_.consume(static_cast<std::size_t>(put));
    } else if (put == 0 || errno == EAGAIN) {
      full = true;
    } else if (errno != EINTR) {
      give_up(errno);
    }
  }
  // Watch for writability only while the file is full: otherwise it would wake the loop for ever.
  if (full) {
    wait_for_room();
  } else if (blocked_) {
    blocked_ = false;
    watch_->want(0);
  }
  if (paused_ && queue_.size() <= low_water_) set_paused(false);
}

// A Watch sets O_NONBLOCK on its descriptor. The shared descriptor must not get this flag: watch an
// epoll descriptor around it instead.
void ConsoleSink::wait_for_room() {
  if (blocked_) return;
  blocked_ = true;
  if (!watch_ && own_) watch_ = std::make_unique<io::Watch>(loop_, own_.get());
  if (!watch_) {
    epoll_ = io::Fd(epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{};
    event.events = EPOLLOUT;
    if (!epoll_ || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd_, &event) != 0) return give_up(errno);
    watch_ = std::make_unique<io::Watch>(loop_, epoll_.get());
  }
  watch_->start(own_ ? io::kWritable : io::kReadable, [this](int) { flush(); });
}

// A full disk may get room again, but a closed reader does not come back.
void ConsoleSink::give_up(int reason) {
  broken_ = kind_ != Kind::plain || !disk_trouble(reason);
  blocked_ = blocked_ && watch_ != nullptr;
  queue_.clear();  // flush() then lets the sources go on
  if (std::exchange(said_so_, true)) return;
  log::warning("cannot write to {}: {}; the job goes on, this output is lost",
               fd_ == STDERR_FILENO ? "stderr" : "stdout", errno_text(reason));
}

void ConsoleSink::set_paused(bool paused) {
  paused_ = paused;
  for (ConsoleSource* source : sources_)
    source->on_pause(paused);
}

}  // namespace lockstep::logs
