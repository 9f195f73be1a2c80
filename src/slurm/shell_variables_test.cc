#include "slurm/shell_variables.h"

#include "slurm/shell_words.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::slurm {
namespace {

// Expands every "$" of the text. A is 3, EMPTY is set and empty, and nothing else is known.
std::string expanded(std::string text) {
  for (std::size_t at = text.find('$'); at != std::string::npos; at = text.find('$', at + 2))
    text.insert(at, 1, kExpandedHere);
  return put_values(text, [](std::string_view name) {
    if (name == "A") return std::optional<std::string>("3");
    if (name == "EMPTY") return std::optional<std::string>("");
    return std::optional<std::string>();
  });
}

TEST(ShellVariables, ADefaultCountsForAnEmptyValue) {
  EXPECT_EQ(expanded("-n ${A:-8}"), "-n 3");
  EXPECT_EQ(expanded("-n ${EMPTY:-8}"), "-n 8");
  EXPECT_EQ(expanded("-n ${EMPTY-8}"), "-n ");
  EXPECT_EQ(expanded("-n ${EMPTY}"), "-n ");
}

TEST(ShellVariables, AnUnknownValueStaysUnknown) {
  const std::string unknown = std::string(1, kExpandedHere) + "${B:-8}";
  EXPECT_EQ(expanded("${B:-8}"), unknown);
  // The default is a variable itself: whether it is known on the node is not looked into.
  EXPECT_EQ(expanded("${EMPTY:-$A}").substr(0, 9), std::string(1, kExpandedHere) + "${EMPTY:");
}

}  // namespace
}  // namespace lockstep::slurm
