#include "agent/signal_router.h"

#include "proc/signals.h"

#include <signal.h>

namespace lockstep::agent {

SignalRouter::SignalRouter(io::Loop& loop, const launch::LaunchConfig& config, Workers& workers,
                           Listener& listener)
    : loop_(loop),
      workers_(workers),
      listener_(listener),
      rules_(config.signals, config.forwarded_signals) {}

Status SignalRouter::open(const proc::Guardian* guardian) {
  LOCKSTEP_TRY_ASSIGN(source_,
                      SignalSource::open(loop_, [this](int signal) { on_signal(signal); }));
  if (guardian == nullptr) return {};
  // If the guardian dies, nothing sweeps up after the agent any more. End the job rather than run
  // without it.
  guardian_ = std::make_unique<io::Watch>(loop_, guardian->pidfd.get());
  guardian_->start(io::kReadable, [this](int) { lose_guardian(); });
  return {};
}

void SignalRouter::lose_guardian() {
  guardian_.reset();
  listener_.on_guardian_gone();
}

void SignalRouter::on_signal(int signal) {
  // nohup starts a program with SIGHUP ignored. Then a hangup must not end the job.
  const bool ignored = signal == SIGHUP && proc::is_ignored(SIGHUP);
  switch (rules_.meaning(signal, ignored, io::Clock::now())) {
    case SignalRules::Meaning::nothing:
      return;
    case SignalRules::Meaning::reap:
      return workers_.reap_orphans();
    case SignalRules::Meaning::resize:
      return workers_.resize_terminals();
    case SignalRules::Meaning::forward:
      return workers_.forward(signal);
    case SignalRules::Meaning::stop:
      return listener_.on_stop(signal, rules_.is_listed(signal));
    case SignalRules::Meaning::urgent:
      return listener_.on_urgent(signal);
  }
}

}  // namespace lockstep::agent
