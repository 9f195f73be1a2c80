#include "slurm/node_pieces.h"

#include "base/text.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::slurm {
namespace {

using Texts = std::vector<std::string>;
using Answers = std::map<std::int64_t, std::string>;

TEST(NodePieces, MixedLinesOfSeveralTasksBecomeTheirAnswers) {
  const std::string a = "[" + std::string(1700, 'a') + "]";
  const std::string b = "[" + std::string(1200, 'b') + ": 7 é]";
  const Texts of_a = split(print_pieces(a), '\n');
  const Texts of_b = split(print_pieces(b), '\n');
  std::string mixed;
  for (std::size_t i = 0; i < std::max(of_a.size(), of_b.size()); ++i) {
    if (i < of_a.size()) mixed += "12: " + of_a[i] + "\n";
    if (i < of_b.size()) mixed += " 0: " + of_b[i] + "\n";
  }
  for (const std::string& line : split(mixed, '\n'))
    EXPECT_LT(line.size(), 1000U) << "Slurm cuts longer lines";
  EXPECT_EQ(join_pieces(mixed), (Answers{{0, b}, {12, a}}));
}

TEST(NodePieces, ALineThatSrunHasCutIsWhole) {
  EXPECT_EQ(join_pieces("0: [1,\n1: [3]\n0:  2]\n"), (Answers{{0, "[1, 2]"}, {1, "[3]"}}));
}

TEST(NodePieces, WordsOfATaskPrologComeBeforeTheAnswer) {
  std::string mixed = "0: welcome\n0: [to]\n0: n1";
  for (const std::string& line : split(print_pieces("[1]"), '\n'))
    mixed += line + "\n0: ";
  EXPECT_EQ(join_pieces(mixed), (Answers{{0, "[1]"}}));
}

TEST(NodePieces, OtherLinesAreSkipped) {
  EXPECT_EQ(join_pieces(""), Answers{});
  EXPECT_EQ(join_pieces("welcome\nwelcome: x\n-1: [\n99999999999: [\n2: [1]\n\nx 3: x\n2:"),
            (Answers{{2, "[1]"}}));
}

TEST(NodePieces, ALongAnswerIsDroppedAndTheOthersStay) {
  EXPECT_EQ(join_pieces("0: abcd\n1: ab\n0: ef\n1: cd\n", {.tasks = 2, .bytes = 4}),
            (Answers{{1, "abcd"}}));
  EXPECT_EQ(join_pieces("0: abcd\n2: ab\n", {.tasks = 2, .bytes = 4}), (Answers{{0, "abcd"}}));
}

}  // namespace
}  // namespace lockstep::slurm
