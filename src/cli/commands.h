// The subcommands. Each turns argv into one call on a room below and words for a person; the return
// value is the process's exit code (docs/command-line.md).
#pragma once

#include "base/error.h"
#include "cli/options.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

using Args = std::vector<std::string>;  // without program and subcommand name

enum class RunAs { run, torchrun, launch };
int run_command(const Args& args, RunAs as);
int store_command(const Args& args);

// The exit code where parsing already settles it: bad options (said), or --help (printed).
std::optional<int> settled(const Table& table, const ParseResult& parsed);

// One line to stderr: "lockstep run: error: what; advice".
void print_error(std::string_view program, const Error& error);

}  // namespace lockstep::cli
