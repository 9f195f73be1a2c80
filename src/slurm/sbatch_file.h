// Reads a batch script as sbatch reads it: which of its #SBATCH lines count, which it passes over
// in silence, and what makes it refuse the script. Pure.
#pragma once

#include "slurm/sbatch_options.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// The controller's own limit unless a site sets max_script_size.
inline constexpr std::size_t kMostScriptBytes = 4U << 20;

// Lines of commands: comments and blank lines left out, lines that end with a backslash joined.
struct BodyLine {
  int line = 0;  // the first
  int last = 0;
  std::string text;  // without the line breaks; joined as the shell joins them
};

// A line that looks like a directive but is a comment for sbatch.
struct IgnoredDirective {
  enum class Why : std::uint8_t {
    after_command,  // behind the first command
    two_hashes,     // "##SBATCH"
    space,          // " #SBATCH", "# SBATCH"
    spelling,       // "#Sbatch"
  };
  int line = 0;
  Why why = Why::after_command;
  std::string text;
  int command_line = 0;  // after_command: where that command is
};

// What makes sbatch refuse the script.
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

// Of a text that is refused for its size or a null byte there is a problem and nothing else.
SbatchFile read_sbatch_file(std::string_view text);

// The words of one #SBATCH line (without "#SBATCH") as sbatch splits them: quotes and backslashes
// much as in a shell, '#' begins a comment, and "hetjob" ends the line. invalid_input: a quote is
// not closed, or a word begins with ':'.
Result<std::vector<std::string>> directive_words(std::string_view line);
// A word of a #SBATCH line. It must have no line break.
std::string directive_quote(std::string_view word);

// The script that `sbatch --wrap=COMMAND` makes.
std::string wrap_script(std::string_view command);

}  // namespace lockstep::slurm
