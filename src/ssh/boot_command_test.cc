#include "ssh/boot_command.h"

#include <gtest/gtest.h>

namespace lockstep::ssh {
namespace {

const BinaryName kName{"0.1.0", "0123abcd", "feed"};

TEST(BootCommand, NeedsNoQuotingInAnyShell) {
  for (const std::string& command :
       {boot_command(kName), push_command({kName, "ff", 10, true, true})}) {
    ASSERT_TRUE(command.starts_with("exec sh -c '"));
    ASSERT_TRUE(command.ends_with("'"));
    const std::string script = command.substr(12, command.size() - 13);
    EXPECT_EQ(script.find_first_of("'\\!\n"), std::string::npos) << script;
  }
}

TEST(BootCommand, AnAbsentBinaryIsToldWithTheHostsKind) {
  const auto absent = parse_absent("Welcome\n\nlockstep-absent Linux aarch64 1234\n");
  ASSERT_TRUE(absent);
  EXPECT_EQ(absent->system, "Linux");
  EXPECT_EQ(absent->machine, "aarch64");
  EXPECT_EQ(absent->partial, 1234U);
  EXPECT_EQ(parse_absent("lockstep-absent Linux x86_64 x")->partial, 0U);
  EXPECT_FALSE(parse_absent("lockstep-absent Linux"));
  EXPECT_FALSE(parse_absent("This account is currently not available.\n"));
}

TEST(BootCommand, ThePushSaysHowItEnded) {
  EXPECT_EQ(parse_pushed("hello\n\nlockstep-pushed done\n"), Pushed::done);
  EXPECT_EQ(parse_pushed("lockstep-pushed no-exec\r\n"), Pushed::no_exec);
  EXPECT_EQ(parse_pushed("lockstep-pushed no-space"), Pushed::no_space);
  EXPECT_FALSE(parse_pushed("lockstep-pushed maybe"));
  EXPECT_FALSE(parse_pushed(""));
}

}  // namespace
}  // namespace lockstep::ssh
