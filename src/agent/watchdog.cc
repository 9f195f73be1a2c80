// Drives the file timer and the watch for stuck workers.
#include "agent/watchdog.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace lockstep::agent {
namespace {
// torchelastic checks its timers every 0.1 s, too.
constexpr std::chrono::milliseconds kFileTimerPeriod{100};
constexpr std::chrono::milliseconds kStuckPeriod{500};

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}
}  // namespace

Result<std::unique_ptr<FileTimer>> FileTimer::open(io::Loop& loop, std::string path,
                                                   OnExpired on_expired, IsOurs ours) {
  struct stat found {};
  if (lstat(path.c_str(), &found) == 0 && S_ISFIFO(found.st_mode))
    unlink(path.c_str());  // left by an earlier run
  if (mkfifo(path.c_str(), 0600) != 0) return fail_sys("make the timer file " + path, errno);
  // Open for writing, too: otherwise the FIFO reports end of file whenever no worker has it open.
  io::Fd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return fail_sys("open the timer file " + path, errno);
  // In a folder that every user may write to, another user may have replaced the FIFO before
  // open().
  if (fstat(fd.get(), &found) != 0 || !S_ISFIFO(found.st_mode) || found.st_uid != geteuid())
    return fail(Errc::denied, "the timer file " + path + " was replaced by another process");
  return std::unique_ptr<FileTimer>(
      new FileTimer(loop, std::move(path), std::move(fd), std::move(on_expired), std::move(ours)));
}

FileTimer::FileTimer(io::Loop& loop, std::string path, io::Fd fd, OnExpired on_expired, IsOurs ours)
    : path_(std::move(path)),
      fd_(std::move(fd)),
      on_expired_(std::move(on_expired)),
      ours_(std::move(ours)),
      watch_(loop, fd_.get()),
      timer_(loop) {
  watch_.start(io::kReadable, [this](int) { on_readable(); });
  timer_.start(kFileTimerPeriod, [this] { check(); });
}

FileTimer::~FileTimer() {
  unlink(path_.c_str());
}

void FileTimer::on_readable() {
  // At most one read for each turn of the loop: a busy writer must not starve other events.
  char bytes[65536];
  const ssize_t got = read(fd_.get(), bytes, sizeof bytes);
  if (got > 0) table_.feed({bytes, static_cast<std::size_t>(got)});
  if (const auto warning = table_.take_warning())
    log::warning("file timer {}: {}", path_, *warning);
}

void FileTimer::check() {
  timer_.start(kFileTimerPeriod, [this] { check(); });
  // Drop timers of processes that have ended: their pid may come back as another process.
  for (const pid_t pid : table_.pids())
    if (!ours_(pid)) table_.forget(pid);
  for (const auto& expired : table_.take_expired(unix_seconds()))
    on_expired_(expired);
}

StuckWatch::StuckWatch(io::Loop& loop, io::Duration limit, std::function<std::vector<pid_t>()> pids,
                       std::function<void(pid_t)> on_stuck)
    : tracker_(limit),
      period_(std::min<io::Duration>(kStuckPeriod, limit / 2)),
      pids_(std::move(pids)),
      on_stuck_(std::move(on_stuck)),
      timer_(loop) {
  timer_.start(period_, [this] { check(); });
}

void StuckWatch::check() {
  timer_.start(period_, [this] { check(); });
  for (const pid_t pid : pids_())
    if (tracker_.observe(pid, process_state("/proc", pid), io::Clock::now())) on_stuck_(pid);
}

}  // namespace lockstep::agent
