// Reads signals for commands other than the agent.
#include "proc/signal_watch.h"

#include "proc/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <utility>

namespace lockstep::proc {
namespace {

std::atomic<unsigned> reported_stops = 0;  // a bit for each signal number

}  // namespace

int SignalWatch::take_stop() {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM})
    if ((reported_stops.fetch_and(~(1U << number)) & (1U << number)) != 0) return number;
  return 0;
}

Result<std::unique_ptr<SignalWatch>> SignalWatch::open(io::Loop& loop,
                                                       std::function<void(int)> on_signal) {
  const sigset_t set = handled_signals();
  io::Fd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return fail_sys("watch signals", errno);
  return std::unique_ptr<SignalWatch>(new SignalWatch(loop, std::move(fd), std::move(on_signal)));
}

SignalWatch::SignalWatch(io::Loop& loop, io::Fd fd, std::function<void(int)> on_signal)
    : fd_(std::move(fd)), on_signal_(std::move(on_signal)), watch_(loop, fd_.get()) {
  watch_.start(io::kReadable, [this](int) { read_one(); });
}

// Read one signal per turn of the loop: the callback may destroy this object.
void SignalWatch::read_one() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return;
  const auto number = static_cast<int>(info.ssi_signo);
  if (number == SIGPIPE || (number == SIGHUP && is_ignored(SIGHUP))) return;
  // Code after the loop can ask for a stop signal, even if a callback has seen the signal already.
  if (is_stop_signal(number)) reported_stops.fetch_or(1U << number);
  on_signal_(number);
}

}  // namespace lockstep::proc
