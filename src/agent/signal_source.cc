// Reads signals from a signalfd.
#include "agent/signal_source.h"

#include "proc/guardian.h"
#include "proc/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace lockstep::agent {

Result<std::unique_ptr<SignalSource>> SignalSource::open(io::Loop& loop,
                                                         std::function<void(int)> on_signal) {
  const sigset_t set = proc::handled_signals();
  io::Fd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return fail_sys("watch signals", errno);
  return std::unique_ptr<SignalSource>(new SignalSource(loop, std::move(fd), std::move(on_signal)));
}

SignalSource::SignalSource(io::Loop& loop, io::Fd fd, std::function<void(int)> on_signal)
    : fd_(std::move(fd)), on_signal_(std::move(on_signal)), watch_(loop, fd_.get()) {
  watch_.start(io::kReadable, [this](int) { poll(); });
}

void SignalSource::poll() {
  signalfd_siginfo info{};
  while (read(fd_.get(), &info, sizeof info) == sizeof info) {
    const auto signal = static_cast<int>(info.ssi_signo);
    // The guardian marks the signals that it forwards with a value of its own (proc/signals.h).
    const bool passed_on = info.ssi_code == SI_QUEUE && info.ssi_int == proc::kForwardedMark;
    // SIGCHLD is never a duplicate: the kernel merges pending ones, so each may stand for several
    // children.
    if (signal == SIGCHLD || counter_.is_news(signal, passed_on, io::Clock::now()))
      on_signal_(signal);
  }
}

}  // namespace lockstep::agent
