#include "slurm/shell_words.h"

#include "base/text.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::slurm {
namespace {

// "1:{A=1}[srun][hostname]&": a line per command; '~' is the mark of an expansion.
std::string read(std::string_view text, Expansions expansions = Expansions::mark) {
  std::string out;
  for (const ShellCommand& each : read_shell(text, expansions)) {
    out += fmt::format("{}:", each.line);
    for (const std::string& word : each.assignments)
      out += fmt::format("{{{}}}", word);
    for (const std::string& word : each.words)
      out += fmt::format("[{}]", word);
    for (const std::string& word : each.outputs)
      out += fmt::format(">{}", word);
    out += each.end + "\n";
  }
  std::replace(out.begin(), out.end(), kExpandedHere, '~');
  return out;
}

TEST(ShellWords, ReadsCommandsAndQuotes) {
  EXPECT_EQ(read("#!/bin/bash\nA=1 B='x y' srun -n 2 \"a b\" c\\ d # more\n"),
            "2:{A=1}{B=x y}[srun][-n][2][a b][c d]\n");
  EXPECT_EQ(read("a \\\n  b\nc; d & e | f && g"),
            "1:[a][b]\n3:[c];\n3:[d]&\n3:[e]|\n3:[f]&&\n3:[g]\n");
  EXPECT_EQ(read("if true; then srun x; fi\nfor i in 1 2; do y; done"),
            "1:[true];\n1:[srun][x];\n2:[for][i][in][1][2];\n2:[y];\n");
  EXPECT_EQ(read("A=1\nexport B=2"), "1:{A=1}\n2:[export][B=2]\n");
  EXPECT_EQ(read("echo \"a\\n\\\"b\" 'c\nd'\nnext"), "1:[echo][a\\n\"b][c\nd]\n3:[next]\n");
  EXPECT_EQ(read("echo $'a' $"), "1:[echo][a][$]\n");
}

TEST(ShellWords, MarksWhatThisShellExpands) {
  EXPECT_EQ(read("srun bash -c \"x $A \\$B\" '$C' ${D:-1}e$(f g)`h`"),
            "1:[srun][bash][-c][x ~$A $B][$C][~${D:-1}e~$(f g)~`h`]\n");
  EXPECT_EQ(read("echo $((1 + $A))"), "1:[echo][~$((1 + $A))]\n");
  EXPECT_EQ(read("x \x01$A $B", Expansions::keep), "1:[x][~$A][$B]\n");
}

TEST(ShellWords, ReadsArraysRedirectionsAndHereDocuments) {
  EXPECT_EQ(read("A=( --x 1\n  \"b c\" $Y )\nrun"), "1:{A=--x 1 b c ~$Y}\n3:[run]\n");
  EXPECT_EQ(read("srun x > out 2>&1 < in\ny &> all"), "1:[srun][x]>out>1\n2:[y]>all\n");
  EXPECT_EQ(read("cat > f <<EOF\nsrun not\nEOF\nz"), "1:[cat]>f\n4:[z]\n");
  EXPECT_EQ(read("cat <<-'E'\n\tsrun\n\tE\nz <<< word"), "1:[cat]\n4:[z]\n");
  EXPECT_EQ(read_shell("cat <<E\nx\nE\nz").front().here_last, 3);
  EXPECT_EQ(read("(a; b) &\nwait"), "1:[a];\n1:[b]&\n2:[wait]\n");
}

TEST(ShellWords, TakesWhatIsNotClosedAsItComes) {
  EXPECT_EQ(read("a 'b"), "1:[a][b]\n");
  EXPECT_EQ(read("a \"b"), "1:[a][b]\n");
  EXPECT_EQ(read("a $(b"), "1:[a][~$(b]\n");
  EXPECT_EQ(read("a ${"), "1:[a][~${]\n");
  EXPECT_EQ(read("a `"), "1:[a][~`]\n");
  EXPECT_EQ(read("a \\"), "1:[a]\n");
  EXPECT_EQ(read("cat <<E\nx"), "1:[cat]\n");
  EXPECT_EQ(read("A=(x"), "1:{A=}\n");
}

TEST(ShellWords, NamesVariablesAndCommandsThatAreExpanded) {
  const auto words = read_shell("x \"$A ${B:-1} \\$C $(hostname -s) $(( $D + 1 ))\" `id`");
  ASSERT_EQ(words.size(), 1U);
  EXPECT_EQ(join(expanded_variables(words[0].words[1]), " "), "A B D");
  EXPECT_EQ(join(expanded_commands(words[0].words[1]), "|"), "hostname -s");
  EXPECT_EQ(join(expanded_commands(words[0].words[2]), "|"), "id");
}

}  // namespace
}  // namespace lockstep::slurm
