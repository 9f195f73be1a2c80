// Signal names and the process's signal mask. Lockstep blocks the signals it handles before
// anything else runs and takes them from a descriptor; nothing is ever done inside a handler.
#pragma once

#include <signal.h>

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::proc {

// 15 -> "SIGTERM", 34.. -> "SIGRTMIN+n", unknown -> "signal N".
std::string signal_name(int signal);
// "SIGTERM", "TERM" or "15"; nullopt if it names no signal.
std::optional<int> signal_number(std::string_view name);

// Everything but the faults (SEGV, BUS, FPE, ILL, TRAP, ABRT, SYS), job control (TSTP, TTIN, TTOU,
// CONT), SIGPROF and the two that can't be blocked.
sigset_t handled_signals();
void block(const sigset_t& set);
bool is_ignored(int signal);  // its disposition here is SIG_IGN (nohup, a background shell)

}  // namespace lockstep::proc
