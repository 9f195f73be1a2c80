// Names and numbers of signals.
#include "proc/signals.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace lockstep::proc {
namespace {

constexpr std::array<int, 4> kStops = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

}  // namespace

std::string signal_name(int signal) {
  if (const char* abbreviation = sigabbrev_np(signal); abbreviation != nullptr)
    return std::string("SIG") + abbreviation;
  if (signal == SIGRTMIN) return "SIGRTMIN";
  if (signal > SIGRTMIN && signal <= SIGRTMAX)
    return "SIGRTMIN+" + std::to_string(signal - SIGRTMIN);
  return "signal " + std::to_string(signal);
}

std::optional<int> signal_number(std::string_view name) {
  std::string wanted = to_upper(strip(name));
  if (const auto number = parse_int(wanted); number && *number > 0 && *number <= SIGRTMAX)
    return static_cast<int>(*number);
  if (!wanted.starts_with("SIG")) wanted.insert(0, "SIG");
  for (int signal = 1; signal <= SIGRTMAX; ++signal)
    if (signal_name(signal) == wanted) return signal;
  // Old names of the same numbers.
  if (wanted == "SIGCLD") return SIGCHLD;
  if (wanted == "SIGPOLL") return SIGIO;
  return std::nullopt;
}

sigset_t handled_signals() {
  sigset_t set;
  // Faults must reach their handlers, and job control must still stop this process.
  sigfillset(&set);
  for (const int kept : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGTSTP,
                         SIGTTIN, SIGTTOU, SIGCONT, SIGKILL, SIGSTOP, SIGPROF})
    sigdelset(&set, kept);
  return set;
}

void block(const sigset_t& set) {
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool is_stop_signal(int signal) {
  return std::find(kStops.begin(), kStops.end(), signal) != kStops.end();
}

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kStops)
    sigaddset(&set, number);
  // `nohup` ignores SIGHUP so that the program survives the terminal. Do not take the signal then.
  if (is_ignored(SIGHUP)) sigdelset(&set, SIGHUP);
  return set;
}

int take_stop_signal(std::chrono::milliseconds limit) {
  const sigset_t set = stop_signals();
  const auto whole = std::chrono::floor<std::chrono::seconds>(limit);
  const timespec wait{whole.count(), std::chrono::nanoseconds(limit - whole).count()};
  return std::max(sigtimedwait(&set, nullptr, &wait), 0);
}

}  // namespace lockstep::proc
