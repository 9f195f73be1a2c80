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
  std::string where;
  PlaceOptions places;
  VariableOptions variables;
  std::vector<std::string> command;
  std::optional<std::string> shell;  // --shell: a text for /bin/sh there
  std::optional<std::string> folder;
  bool no_input = false;
  bool json = false;
  bool in_project = false;  // in the environment of the project that the folder belongs to
};

const Table& exec_table();

// Returns advice for a command that was not found: one word with white space or a shell's signs in
// it is probably meant for --shell. Empty: no advice.
std::string shell_hint(const ExecOptions& options);

// words: all behind `lockstep exec`; parsed: the same, as far as the table reads them. Options may
// stand before and behind the place; from the command on everything is taken as it is.
Result<ExecOptions> exec_options(const std::vector<std::string>& words, const Parsed& parsed);

}  // namespace lockstep::cli
