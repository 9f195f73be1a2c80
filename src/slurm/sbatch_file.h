// Reads a batch script as sbatch does: which #SBATCH lines count, which ones sbatch silently
// ignores, and what makes sbatch refuse the script. Pure.
#pragma once

#include "slurm/sbatch_options.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// slurmctld's default limit; a site can change it with max_script_size.
inline constexpr std::size_t kMostScriptBytes = 4U << 20;

// A command line of the script. Comments and blank lines are dropped; lines ending in a backslash
// are joined.
struct BodyLine {
  int line = 0;  // number of the first line
  int last = 0;
  std::string text;  // joined as the shell joins lines
};

// A line that looks like a directive but is a comment to sbatch.
struct IgnoredDirective {
  enum class Why : std::uint8_t {
    after_command,  // below the first command
    two_hashes,     // "##SBATCH"
    space,          // " #SBATCH", "# SBATCH"
    spelling,       // "#Sbatch"
  };
  int line = 0;
  Why why = Why::after_command;
  std::string text;
  int command_line = 0;  // for after_command: line of that command
};

// A reason why sbatch refuses the script.
struct ScriptProblem {
  int line = 0;
  std::string what;
  std::string fix;
};

struct SbatchFile {
  std::string shebang;  // "/bin/bash -l"; empty: there is none
  std::vector<Setting> settings;
  std::vector<BodyLine> body;
  std::vector<IgnoredDirective> ignored;
  std::vector<ScriptProblem> problems;
};

// Reads a script. A text with a bad size or a null byte gives only a problem.
SbatchFile read_sbatch_file(std::string_view text);

// Splits one #SBATCH line (without "#SBATCH") as sbatch does. Quotes and backslashes work much as
// in a shell, '#' begins a comment, and "hetjob" ends the line. Errors: invalid_input (an open
// quote, or a word that begins with ':').
Result<std::vector<std::string>> directive_words(std::string_view line);
// Quotes a word for a #SBATCH line. The word must not contain a line break.
std::string directive_quote(std::string_view word);

// Returns the script that `sbatch --wrap=COMMAND` makes.
std::string wrap_script(std::string_view command);

}  // namespace lockstep::slurm
