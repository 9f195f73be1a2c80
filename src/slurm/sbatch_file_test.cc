#include "slurm/sbatch_file.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

std::string settings_of(const SbatchFile& file) {
  std::string text;
  for (const Setting& each : file.settings)
    text += fmt::format("{}:{}{} ", each.line, word_of(each),
                        each.component == 0 ? "" : fmt::format("/{}", each.component));
  for (const ScriptProblem& each : file.problems)
    text += fmt::format("[{}: {}] ", each.line, each.what);
  return text;
}

std::string settings_of(std::string_view directives) {
  return settings_of(read_sbatch_file(fmt::format("#!/bin/bash\n{}srun hostname\n", directives)));
}

// Each row as sbatch 22.05 takes it (sbatch -vv --test-only).
TEST(SbatchFile, ReadsDirectivesAsSbatchDoes) {
  const struct {
    const char* directives;
    const char* settings;
  } rows[] = {
      {"#SBATCH -N2 --time 3\n", "2:--nodes=2 2:--time=3 "},
      {"#SBATCH --nodes\n#SBATCH 1\n", "2:--nodes=1 "},
      {"#SBATCH --comment=\"a b\" --parti=g # foo\n", "2:--comment=a b 2:--partition=g "},
      {"#SBATCH --comment='a # \"b' -n1\n", "2:--comment=a # \"b 2:--ntasks=1 "},
      {"#SBATCH --job-name=a#b -n1\n", "2:--job-name=a "},
      {"#SBATCH --job-name=a\\#b -n1\n", "2:--job-name=a#b 2:--ntasks=1 "},
      {"#SBATCH --comment=a\\ b\n", "2:--comment=a [2: 'b' is not an option] "},
      {"#SBATCH 5\n", "[2: '5' is not an option] "},
      {"#SBATCHfoo\n", "[2: 'foo' is not an option] "},
      {"#SBATCH--hold\n", "2:--hold "},
      {"#SBATCH --comment \"x\n", "[2: the quote \" is not closed] "},
      {"#SBATCH : -n1\n", "[2: a word begins with ':'] "},
      {"#SBATCH --node=1\n", "[2: --node may stand for --nodefile, --nodelist, --nodes] "},
      {"#SBATCH --hold=1\n", "[2: --hold takes no value, but is given '1'] "},
      {"#SBATCH -N\n", "[2: -N is given no value] "},
      {"#SBATCH --comment \"\" -N7\n", "[2: --comment is given no value] "},
      {"#SBATCH --site=1 -n1\n", "2:--site=1 2:--ntasks=1 "},
      {"#SBATCH -n1\n\n  \n# words\n#SBATCH -N3\n", "2:--ntasks=1 6:--nodes=3 "},
      {"#SLURM -n2\n", "2:--ntasks=2 "},
      {"#SBATCH -n1 hetjob -N9\n", "2:--ntasks=1 "},
      {"#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -N9\n", "2:--ntasks=1 4:--nodes=9/1 "},
  };
  for (const auto& row : rows)
    EXPECT_EQ(settings_of(row.directives), row.settings) << row.directives;
}

TEST(SbatchFile, KnowsTheDirectivesThatSbatchPassesOver) {
  const auto file = read_sbatch_file(
      "#!/bin/bash\n"
      "##SBATCH -N2\n"
      " #SBATCH -N3\n"
      "# SBATCH -N4\n"
      "#Sbatch -N5\n"
      "# sbatch is called with this file\n"
      "#SBATCH -n1\n"
      "module load cuda\n"
      "#SBATCH -N6\n"
      "##SBATCH -N7\n");
  using Why = IgnoredDirective::Why;
  std::vector<std::pair<int, Why>> found;
  for (const IgnoredDirective& each : file.ignored)
    found.emplace_back(each.line, each.why);
  const std::vector<std::pair<int, Why>> expected = {{2, Why::two_hashes},
                                                     {3, Why::space},
                                                     {4, Why::space},
                                                     {5, Why::spelling},
                                                     {9, Why::after_command}};
  EXPECT_EQ(found, expected);
  EXPECT_EQ(file.ignored.back().command_line, 8);
  EXPECT_EQ(settings_of(file), "7:--ntasks=1 ");
}

TEST(SbatchFile, JoinsContinuedLines) {
  const auto file =
      read_sbatch_file("#!/bin/bash -l\n\nA=1 \\\n  B=2 \\\\\n# a comment \\\nsrun \\\n  hostname");
  ASSERT_EQ(file.body.size(), 2U);
  EXPECT_EQ(file.body[0].line, 3);
  EXPECT_EQ(file.body[0].last, 4);
  EXPECT_EQ(file.body[0].text, "A=1   B=2 \\\\");
  EXPECT_EQ(file.body[1].line, 6);
  EXPECT_EQ(file.body[1].last, 7);
  EXPECT_EQ(file.body[1].text, "srun   hostname");
  EXPECT_EQ(file.shebang, "/bin/bash -l");
}

TEST(SbatchFile, SaysWhySbatchRefusesTheScript) {
  const auto problem = [](std::string_view text) {
    const auto file = read_sbatch_file(text);
    return file.problems.empty()
               ? std::string()
               : fmt::format("{}: {}", file.problems[0].line, file.problems[0].what);
  };
  EXPECT_EQ(problem(""), "1: the script is empty");
  EXPECT_EQ(problem(" \n\t\n"), "1: the script is empty");
  EXPECT_EQ(problem("\n#!/bin/bash\nx\n"), "1: the first line is not '#!' with an interpreter");
  EXPECT_EQ(problem("#!/bin/bash\nx\ny\r\n"), "3: lines end with CR LF, as on Windows");
  EXPECT_EQ(problem(std::string_view("#!/bin/bash\nx\0", 14)), "1: the script has a null byte");
  EXPECT_EQ(problem("#!/bin/bash\n" + std::string(kMostScriptBytes, 'x')),
            "1: the script has 4194316 bytes; Slurm takes 4 MiB");
  EXPECT_EQ(problem("#!/bin/bash"), "");
}

TEST(SbatchFile, AWrappedCommandIsAScript) {
  const auto file = read_sbatch_file(wrap_script("srun hostname"));
  EXPECT_EQ(file.shebang, "/bin/sh");
  ASSERT_EQ(file.body.size(), 1U);
  EXPECT_EQ(file.body[0].text, "srun hostname");
}

}  // namespace
}  // namespace lockstep::slurm
