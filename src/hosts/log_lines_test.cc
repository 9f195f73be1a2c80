#include "hosts/log_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::hosts {
namespace {

std::string show(const OutputLine& line) {
  return (line.rank ? std::to_string(*line.rank) : "-") + (line.begins ? "|" : "+") +
         std::string(line.text);
}

// Returns the lines that the pieces of a text make.
std::vector<std::string> lines_of(const std::vector<std::string>& pieces) {
  std::vector<std::string> all;
  const auto put = [&](const OutputLine& line) { all.push_back(show(line)); };
  OutputLines lines;
  for (const std::string& piece : pieces)
    lines.put(piece, put);
  lines.take_rest(put);
  return all;
}

std::string object(std::string_view text) {
  std::string all;
  OutputLines lines;
  const auto put = [&](const OutputLine& line) { all += log_line_rest(line); };
  lines.put(text, put);
  lines.take_rest(put);
  return all;
}

using Lines = std::vector<std::string>;

TEST(OutputLines, ARowOfASweepHasANumber) {
  EXPECT_EQ(lines_of({"[row3]: a\n[row]: b\n[rank1]: c\n"}),
            (Lines{"3|a\n", "-|[row]: b\n", "1|c\n"}));
  EXPECT_EQ(object("[row3]: a\n"), "\"row\":3,\"text\":\"a\"}\n");
  OutputLines lines;
  std::string tagged;
  lines.put("[row12]: a\rb\n", [&](const OutputLine& line) { tagged += tagged_text(line); });
  EXPECT_EQ(tagged, "[row12]: a\rb\n");
}

TEST(OutputLines, ARankIsReadOnceForALine) {
  EXPECT_EQ(lines_of({"[rank3]: a\nreport\n[rank12]: \n"}),
            (Lines{"3|a\n", "-|report\n", "12|\n"}));
  EXPECT_EQ(lines_of({"[rank1]: [rank0]: x\n"}), (Lines{"1|[rank0]: x\n"}));
}

TEST(OutputLines, HowTheTextIsCutMakesNoDifference) {
  const std::string text = "[rank3]: a\n\nreport\n[rank0]: \r[rank0]: 10%\n[rank7]: end";
  const auto whole = lines_of({text});
  for (std::size_t size = 1; size < text.size(); ++size) {
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size(); at += size)
      pieces.push_back(text.substr(at, size));
    EXPECT_EQ(lines_of(pieces), whole) << size;
  }
}

TEST(OutputLines, OnlyAWholeTagIsARank) {
  for (const char* text : {"[rank]: x\n", "[rank1]:x\n", "[rank-1]: x\n", "[rank5000000]: x\n",
                           "[rank99999999999999999999]: x\n", " [rank1]: x\n"})
    EXPECT_EQ(lines_of({text}), Lines{std::string("-|") + text});
}

// Every piece of a long line belongs to the rank of the line, even if a piece begins with a tag.
TEST(OutputLines, ALongLineComesInPiecesOfBoundedSize) {
  const std::string big(OutputLines::kMostLine, 'x');
  EXPECT_EQ(lines_of({"[rank3]: " + big, "[rank4]: rest\n", "[rank4]: y\n"}),
            (Lines{"3|" + big, "3+[rank4]: rest\n", "4|y\n"}));
}

TEST(OutputLines, AfterTheRestWasTakenTheLineGoesOn) {
  std::vector<std::string> all;
  const auto put = [&](const OutputLine& line) { all.push_back(show(line)); };
  OutputLines lines;
  lines.put("[rank2]: name? ", put);
  EXPECT_TRUE(lines.has_rest());
  lines.take_rest(put);
  lines.take_rest(put);
  lines.put("x\n[rank2]: y\n", put);
  EXPECT_FALSE(lines.has_rest());
  EXPECT_EQ(all, (Lines{"2|name? ", "2+x\n", "2|y\n"}));
}

TEST(LineForm, LinesOfOneRank) {
  const LineForm form{.before = "a: ", .rank = 3};
  EXPECT_TRUE(form.by_line());
  EXPECT_EQ(form.text({.rank = 3, .text = "x\n"}), "a: [rank3]: x\n");
  EXPECT_EQ(form.text({.rank = 3, .text = "piece"}), "a: [rank3]: piece\n");
  EXPECT_EQ(form.text({.rank = 4, .text = "x\n"}), "");
  EXPECT_EQ(form.text({.text = "report\n"}), "");
}

TEST(LogLines, ALineIsOneObject) {
  const LineForm form{.before = log_line_head("gpus-0", "stdout"), .json = true};
  EXPECT_EQ(
      form.text({.rank = 3, .text = "loss \"0.1\"\n"}),
      "{\"node\":\"gpus-0\",\"stream\":\"stdout\",\"rank\":3,\"text\":\"loss \\\"0.1\\\"\"}\n");
}

TEST(LogLines, EveryByteSurvives) {
  EXPECT_EQ(object("[rank12]: \n"), "\"rank\":12,\"text\":\"\"}\n");
  EXPECT_EQ(object("a\rb\n"), "\"text\":\"a\\rb\"}\n");
  EXPECT_EQ(object("\xff\n"), "\"text\":\"\xef\xbf\xbd\",\"text_base64\":\"/w==\"}\n");
  EXPECT_EQ(object("no end"), "\"text\":\"no end\",\"cut\":true}\n");
}

}  // namespace
}  // namespace lockstep::hosts
