// Reads a shell script far enough to see which commands it runs with which words. It is no shell:
// it follows quotes, continuations, here-documents and expansions, and takes what it does not know
// as it comes. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// In the text of a word this byte stands in front of each '$' (or backquote) that the script's own
// shell expands, as in "$X" and $X. A '$' without it is left for somebody else, as in '$X' and \$X.
inline constexpr char kExpandedHere = '\x01';

struct ShellCommand {
  int line = 0;
  std::vector<std::string> assignments;  // "A=1" in front of the words, or alone
  std::vector<std::string> words;        // quotes taken off
  // The files of > and >>. Empty: the line ends behind the sign, and the shell refuses the script.
  std::vector<std::string> outputs;
  // What stands behind it: "|", "&", "&&", "||", ";", ")" or nothing.
  std::string end;
  // The last line of its here-documents, which begin behind its own; 0: it has none.
  int here_last = 0;
};

enum class Expansions : unsigned char {
  mark,  // put kExpandedHere in front
  keep,  // the text was read before and has its marks: the inside of bash -c "..."
};

// Keywords (if, then, do, ...), braces and the bodies of here-documents are left out. Linear in the
// text; at most 100,000 commands.
std::vector<ShellCommand> read_shell(std::string_view text,
                                     Expansions expansions = Expansions::mark);

// The text without its marks, for people.
std::string without_marks(std::string_view text);

// The names of the variables in a text that the script's own shell expands: "$A" and "${B:-1}" give
// A and B.
std::vector<std::string> expanded_variables(std::string_view text);
// The commands of "$(...)" and backquotes that it runs.
std::vector<std::string> expanded_commands(std::string_view text);

}  // namespace lockstep::slurm
