// The command line of `lockstep exec`.
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "cli/place_options.h"
#include "cli/variable_options.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

struct ExecOptions {
  std::string where;  // a cluster, a host or a job
  PlaceOptions places;
  VariableOptions variables;
  std::vector<std::string> command;   // with --shell: the shell and its text
  std::optional<std::string> shell;   // --shell: a text for /bin/sh on the host
  std::optional<std::string> folder;  // --cwd
  bool no_input = false;
  bool json = false;
  bool in_project = false;  // run in the environment of the project around --cwd
};

const Table& exec_table();

// Returns advice for a command that was not found. A single word with white space or shell
// characters is probably meant for --shell. Empty: no advice.
std::string shell_hint(const ExecOptions& options);

// Reads the command line. words: all words behind `lockstep exec`. parsed: the same words, as far
// as the table reads them. Options may stand before and behind the place. The command's own words
// are never changed. Errors: invalid_input.
Result<ExecOptions> exec_options(const std::vector<std::string>& words, const Parsed& parsed);

}  // namespace lockstep::cli
