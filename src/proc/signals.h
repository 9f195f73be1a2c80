// Signal names, and the process's signal mask. Lockstep blocks the signals it handles before
// anything else runs, and reads them from a descriptor. Nothing happens inside a handler.
#pragma once

#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::proc {

// Returns the name: 15 -> "SIGTERM", 34.. -> "SIGRTMIN+n", unknown -> "signal N".
std::string signal_name(int signal);
// Parses "SIGTERM", "TERM" or "15". nullopt: not a signal.
std::optional<int> signal_number(std::string_view name);

// Returns all signals except faults (SEGV, BUS, FPE, ILL, TRAP, ABRT, SYS), job control (TSTP,
// TTIN, TTOU, CONT), SIGPROF, and the two that cannot be blocked.
sigset_t handled_signals();
void block(const sigset_t& set);
bool is_ignored(int signal);  // started with SIG_IGN for it (nohup, a background shell)

// Returns whether the signal asks a process to end: INT, TERM, HUP or QUIT.
bool is_stop_signal(int signal);
// Returns the stop signals, without SIGHUP if this process was started to ignore it (nohup): a
// blocked signal becomes pending even if it is ignored.
sigset_t stop_signals();
// Waits for one of stop_signals(), at most `limit`, and takes it. Returns its number; 0: none came.
// The signals must be blocked.
int take_stop_signal(std::chrono::milliseconds limit);

}  // namespace lockstep::proc
