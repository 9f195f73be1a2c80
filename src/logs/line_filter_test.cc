#include "logs/line_filter.h"

#include <gtest/gtest.h>

namespace lockstep::logs {
namespace {

std::string picked(const std::vector<std::string>& chunks, std::vector<std::string> wanted) {
  LineFilter filter("[d1]:", std::move(wanted));
  ByteQueue out;
  for (const auto& chunk : chunks)
    filter.feed(chunk, out);
  filter.finish(out);
  return std::string(out.view());
}

TEST(LineFilter, CopiesLinesThatContainAnyOfThem) {
  EXPECT_EQ(picked({"loss a,b 1\nnothing\nab c\n"}, {"a,b", "c"}), "[d1]:loss a,b 1\n[d1]:ab c\n");
  EXPECT_EQ(picked({"x\n"}, {"a"}), "");
  EXPECT_EQ(picked({"x\n\n"}, {""}), "[d1]:x\n[d1]:\n");
}

TEST(LineFilter, ThePrefixIsNotSearched) {
  EXPECT_EQ(picked({"x\n"}, {"d1"}), "");
}

TEST(LineFilter, LinesMayComeInPieces) {
  const std::string text = "ab\r\nlo\rxx lo\n\rab lo";
  const std::string whole = picked({text}, {"lo"});
  EXPECT_EQ(whole, "[d1]:lo\n[d1]:xx lo\n[d1]:ab lo");
  for (std::size_t at = 0; at <= text.size(); ++at) {
    EXPECT_EQ(picked({text.substr(0, at), text.substr(at)}, {"lo"}), whole) << at;
  }
  std::vector<std::string> bytes;
  for (char c : text)
    bytes.emplace_back(1, c);
  EXPECT_EQ(picked(bytes, {"lo"}), whole);
}

TEST(LineFilter, LongLinesAreJudgedByTheirBeginningAndCopiedWhole) {
  const std::string filler(LineFilter::kJudged, 'x');
  EXPECT_EQ(picked({"find" + filler, filler + "\nx\n"}, {"find"}),
            "[d1]:find" + filler + filler + "\n");
  EXPECT_EQ(picked({filler, "find\n"}, {"find"}), "");
  EXPECT_EQ(picked({filler + "find\nfind\n"}, {"find"}), "[d1]:find\n");
}

}  // namespace
}  // namespace lockstep::logs
