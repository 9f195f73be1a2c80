#include "rent/stop_signals.h"

#include "proc/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace lockstep::rent {
namespace {

// Returns an epoll descriptor, readable when either of the two is.
Result<io::Fd> either_of(int one, int other) {
  io::Fd both(epoll_create1(EPOLL_CLOEXEC));
  for (const int each : {one, other}) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (!both || epoll_ctl(both.get(), EPOLL_CTL_ADD, each, &event) != 0)
      return fail_sys("epoll", errno);
  }
  return both;
}

}  // namespace

Result<StopSignals> StopSignals::open() {
  sigset_t set;
  sigemptyset(&set);
  // A signal that this process ignores, as SIGHUP under nohup, must not stop anything.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    if (!proc::is_ignored(number)) sigaddset(&set, number);
  io::Fd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return fail_sys("signalfd", errno);
  return StopSignals(std::move(fd));
}

Status StopSignals::check() {
  if (const int stop = take(); stop != 0)
    return Failure(Error{Errc::canceled, "stopped by the user", {}, stop});
  return {};
}

int StopSignals::take() {
  int last = 0;
  signalfd_siginfo info{};
  while (read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    last = static_cast<int>(info.ssi_signo);
  return last;
}

Result<SideWeb> SideWeb::open(const StopSignals& signals) {
  SideWeb made(nullptr);
  made.quit_ = io::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made.quit_) return fail_sys("eventfd", errno);
  LOCKSTEP_TRY_ASSIGN(made.stops_, either_of(signals.fd(), made.quit_.get()));
  LOCKSTEP_TRY_ASSIGN(made.web_, cloud::open_web({.stop_fd = made.stops_.get()}));
  return made;
}

void SideWeb::stop(bool stop) {
  eventfd_t many = 0;
  (void)(stop ? eventfd_write(quit_.get(), 1) : eventfd_read(quit_.get(), &many));
}

}  // namespace lockstep::rent
