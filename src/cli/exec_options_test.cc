// Words of the command arrive unchanged, and options stand on both sides of the host.
#include "cli/exec_options.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using Words = std::vector<std::string>;

Result<ExecOptions> options_of(const Words& words) {
  const auto parsed =
      parse_options(exec_table(), words, [](std::string_view) { return std::nullopt; });
  EXPECT_TRUE(parsed);
  return exec_options(words, *parsed);
}

TEST(ExecOptions, TheCommandIsTakenAsItIs) {
  EXPECT_EQ(options_of({"h", "--", "ls", "-l"})->command, (Words{"ls", "-l"}));
  EXPECT_EQ(options_of({"h", "ls", "-l"})->command, (Words{"ls", "-l"}));
  EXPECT_EQ(options_of({"h", "git", "--", "file"})->command, (Words{"git", "--", "file"}));
  EXPECT_EQ(options_of({"h", "--", "--", "x"})->command, (Words{"--", "x"}));
  EXPECT_EQ(options_of({"h", "--", "a", "--", "--user", "u"})->command,
            (Words{"a", "--", "--user", "u"}));
  EXPECT_EQ(options_of({"h", "--", ""})->command, (Words{""}));
  EXPECT_EQ(options_of({"h", "a", "--help"})->command, (Words{"a", "--help"}));
}

TEST(ExecOptions, OptionsMayStandOnBothSidesOfTheHost) {
  for (const Words& words : {Words{"--user", "u", "h", "--cwd", "d", "--", "ls"},
                             Words{"h", "--user=u", "--cwd=d", "ls"},
                             Words{"--user", "u", "--cwd", "d", "h", "--", "ls"},
                             Words{"--user", "u", "--cwd", "d", "--", "h", "ls"}}) {
    const auto options = options_of(words);
    ASSERT_TRUE(options);
    EXPECT_EQ(options->where, "h");
    EXPECT_EQ(options->places.user, "u");
    EXPECT_EQ(options->folder, "d");
    EXPECT_EQ(options->command, Words{"ls"});
  }
}

TEST(ExecOptions, EveryOptionIsTakenOnBothSides) {
  for (const Words& words : {Words{"--in-project", "--json", "-n", "--env", "A=1", "--env", "B",
                                   "--env-file", "f", "--secret", "S", "h", "ls"},
                             Words{"h", "--in-project", "--json", "-n", "--env", "A=1", "--env",
                                   "B", "--env-file", "f", "--secret", "S", "ls"}}) {
    const auto options = options_of(words);
    ASSERT_TRUE(options);
    EXPECT_TRUE(options->in_project && options->json && options->no_input);
    EXPECT_EQ(options->variables.env, (Words{"A=1", "B"}));
    EXPECT_EQ(options->variables.env_files, Words{"f"});
    EXPECT_EQ(options->variables.secrets, Words{"S"});
  }
}

TEST(ExecOptions, AShellsTextIsTheOtherWay) {
  EXPECT_EQ(options_of({"h", "--shell", "a && b"})->command, (Words{"/bin/sh", "-c", "a && b"}));
  EXPECT_EQ(options_of({"h", "--shell", "a", "--", "b"}).error().message,
            "both --shell and a command are given");
}

TEST(ExecOptions, WhatIsMissingIsNamed) {
  EXPECT_EQ(options_of({}).error().message, "no host is named");
  EXPECT_EQ(options_of({"h"}).error().message, "no command is given");
  EXPECT_EQ(options_of({"h", "--"}).error().message, "no command is given");
  EXPECT_FALSE(options_of({"h", "--bogus", "x"}));
}

}  // namespace
}  // namespace lockstep::cli
