// The exit codes of lockstep's commands. docs/command-line.md lists them for users. A subcommand
// returns a Result<ExitCode>; dispatch (subcommand.h) prints an Error and maps it to a code by the
// rule of the subcommand's row.
#pragma once

#include "base/error.h"
#include "base/exit_codes.h"

namespace lockstep::cli {

// Other values, 0 to 255, are codes of a job or another program: see passed_on().
enum class ExitCode : int {
  ok = 0,
  failed = kExitFailed,
  usage = 2,  // argparse's code: the command line is wrong
  cannot_run = kExitCannotRun,
  not_found = kExitNotFound,
  not_reached = kExitNotReached,
};

constexpr int number(ExitCode code) {
  return static_cast<int>(code);
}

// Returns the code of a job or of another program, unchanged.
constexpr ExitCode passed_on(int code) {
  return static_cast<ExitCode>(code);
}

// Returns 128 + signal, which a shell reports for a command that a signal ended.
constexpr ExitCode stopped_by(int signal) {
  return static_cast<ExitCode>(128 + signal);
}

// Returns whether the code is stopped_by() of a signal. Also true for not_reached, so never ask
// about the code of a command over SSH.
constexpr bool is_stopped(ExitCode code) {
  return number(code) > 128;
}

// The rule by which an Error becomes an exit code.
struct ErrorCodes {
  ExitCode usage = ExitCode::usage;   // Errc::invalid_input
  ExitCode other = ExitCode::failed;  // every other error
  bool missing_is_usage = false;      // Errc::not_found counts as a wrong command line
};

// Returns the rule that gives all errors the same code.
constexpr ErrorCodes always(ExitCode code) {
  return {.usage = code, .other = code};
}
// The rule of commands over SSH: 255 if a host was not reached, or no host knows how the job ended.
inline constexpr ErrorCodes kAsSsh{.other = ExitCode::not_reached};

// Returns the error's exit code. Under every rule, Errc::canceled with a signal's number in
// Error::sys gives stopped_by() of that signal.
ExitCode code_of(const Error& error, const ErrorCodes& codes = {});

}  // namespace lockstep::cli
