// The exit codes of lockstep's commands. docs/command-line.md lists them for users. A subcommand
// returns a Result<ExitCode>; dispatch (subcommand.h) prints an Error and maps it to a code by the
// rule of the subcommand's row.
#pragma once

#include "base/error.h"

namespace lockstep::cli {

// Any other number from 0 to 255 is passed on from a job or another program: passed_on().
enum class ExitCode : int {
  ok = 0,
  failed = 1,         // as torchrun
  usage = 2,          // the command line is wrong; as argparse
  cannot_run = 126,   // as a shell
  not_found = 127,    // no such program; as a shell
  not_reached = 255,  // as ssh
};

constexpr int number(ExitCode code) {
  return static_cast<int>(code);
}

// Returns the code of a job or of another program, unchanged.
constexpr ExitCode passed_on(int code) {
  return static_cast<ExitCode>(code);
}

// Returns 128 + signal: the code of a command that a signal stopped, as a shell reports it.
constexpr ExitCode stopped_by(int signal) {
  return static_cast<ExitCode>(128 + signal);
}

constexpr bool is_stopped(ExitCode code) {
  return number(code) > 128;
}

// Which code an Error gives.
struct ErrorCodes {
  ExitCode usage = ExitCode::usage;   // Errc::invalid_input
  ExitCode other = ExitCode::failed;  // every other error
  bool missing_is_usage = false;      // Errc::not_found counts as a wrong command line
};

// Returns the rule that gives all errors the same code.
constexpr ErrorCodes always(ExitCode code) {
  return {.usage = code, .other = code};
}
// The rule of commands over SSH: a host was not reached, or no host knows how the job ended.
inline constexpr ErrorCodes kAsSsh{.other = ExitCode::not_reached};

// Errc::canceled with a signal's number in Error::sys gives stopped_by() of that signal, whatever
// the codes.
ExitCode code_of(const Error& error, const ErrorCodes& codes = {});

}  // namespace lockstep::cli
