// Reads a shell script far enough to see which commands it runs with which words. Not a shell:
// follows quotes, continuations, here-documents and expansions, and takes everything else
// literally. Pure.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// Marks each '$' or backquote that the script's own shell expands, as in "$X" and $X. A '$' without
// this byte in front is for another program, as in '$X' and \$X.
inline constexpr char kExpandedHere = '\x01';

struct ShellCommand {
  int line = 0;
  std::vector<std::string> assignments;  // "A=1" in front of the words, or alone
  std::vector<std::string> words;        // quotes taken off
  // Files of > and >>. Empty name: the line ends behind the sign, and the shell refuses the script.
  std::vector<std::string> outputs;
  // What follows the command: "|", "&", "&&", "||", ";", ")" or nothing.
  std::string end;
  // Last line of the command's here-documents; 0: none.
  int here_last = 0;
};

enum class Expansions : unsigned char {
  mark,  // put kExpandedHere in front of expansions
  keep,  // the text has marks already: the inside of bash -c "..."
};

// Returns the commands of a text, without keywords (if, then, do, ...), braces and bodies of
// here-documents. Linear in the text; at most 100,000 commands.
std::vector<ShellCommand> read_shell(std::string_view text,
                                     Expansions expansions = Expansions::mark);

// Returns whether a variable's name may have the character.
inline bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Returns the text without its marks, for people.
std::string without_marks(std::string_view text);

// Returns the variables that the script's own shell expands in a text: A and B for "$A" and
// "${B:-1}".
std::vector<std::string> expanded_variables(std::string_view text);
// Returns the commands in "$(...)" and backquotes that the script's own shell runs.
std::vector<std::string> expanded_commands(std::string_view text);

}  // namespace lockstep::slurm
