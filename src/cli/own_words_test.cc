#include "cli/own_words.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using OwnArgs = std::vector<std::string>;

struct OwnRead {
  std::string folder;
  bool again = false;
  std::string carry;
  Result<OwnArgs> rest = OwnArgs{};
};

OwnRead read_own(const OwnArgs& words) {
  OwnRead read;
  read.rest =
      read_own_words(words, read.folder, {{"--again", &read.again}, {"--carry", &read.carry}});
  return read;
}

TEST(OwnWords, FlagsAndValuesUpToTheDashes) {
  const OwnRead read =
      read_own({"--again", "--folder", "/j", "--carry", "/tmp/x", "--", "a", "--"});
  ASSERT_TRUE(read.rest);
  EXPECT_EQ(*read.rest, (OwnArgs{"a", "--"}));
  EXPECT_TRUE(read.again);
  EXPECT_EQ(read.folder, "/j");
  EXPECT_EQ(read.carry, "/tmp/x");
}

TEST(OwnWords, APersonsCallIsRefused) {
  for (const OwnArgs& words : {OwnArgs{},
                               {"--"},
                               {"--folder", "/j"},
                               {"--folder", "/j", "--"},
                               {"--folder", "j", "--", "a"},
                               {"--", "a"},
                               {"--folder", "/j", "--what", "--", "a"},
                               {"--folder", "/j", "x"},
                               {"--carry"},
                               {"--folder"}}) {
    const OwnRead read = read_own(words);
    ASSERT_FALSE(read.rest);
    EXPECT_EQ(code_of(read.rest), Errc::invalid_input);
  }
}

}  // namespace
}  // namespace lockstep::cli
