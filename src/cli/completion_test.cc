// Checks the words in the scripts. tests/integration/test_completion.py runs the scripts in real
// shells.
#include "cli/completion.h"

#include "cli/commands.h"
#include "cli/program_testing.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

TEST(Completion, NamesOptionsChoicesAndSubcommands) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const auto script = completion_script(lockstep_program(), shell);
    ASSERT_TRUE(script) << shell;
    for (const char* word : {"nproc-per-node", "forkserver", "launch", "store", "version",
                             "torchrun", "c10d", "join_timeout="})
      EXPECT_NE(script->find(word), std::string::npos) << shell << " " << word;
  }
}

TEST(Completion, RowsInRowsAreNamedAndHiddenOnesAreNot) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const auto script = completion_script(sample::kProgram, shell);
    ASSERT_TRUE(script) << shell;
    for (const char* word : {"cluster", "add", "list", "shape", "square", "alias", "how-far"})
      EXPECT_NE(script->find(word), std::string::npos) << shell << " " << word;
    EXPECT_EQ(script->find("secret"), std::string::npos) << shell;
  }
}

TEST(Completion, TcshIsNotOffered) {
  const auto script = completion_script(lockstep_program(), "tcsh");
  ASSERT_FALSE(script);
  EXPECT_NE(script.error().message.find("tcsh"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::cli
