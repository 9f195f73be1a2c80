#include "sync/offer.h"

#include <gtest/gtest.h>

namespace lockstep::sync {
namespace {

Offer some() {
  return {.destination = "work/x y",
          .owner = {"laptop", "/home/me/x", "id"},
          .force = true,
          .dry_run = false,
          .told = true,
          .manifest = {{.path = "a", .size = 3, .mtime_ns = 7}, {.path = "b/c"}}};
}

TEST(Offer, ComesBackAsItWas) {
  const auto read = decode_offer(encode_offer(some())).value();
  EXPECT_EQ(read.destination, "work/x y");
  EXPECT_EQ(read.owner, (Owner{"laptop", "/home/me/x", "id"}));
  EXPECT_TRUE(read.force);
  EXPECT_TRUE(read.told);
  EXPECT_FALSE(read.dry_run);
  EXPECT_EQ(read.manifest, some().manifest);
}

TEST(Offer, IsRefusedWhenCutOrTooLong) {
  const std::string whole = encode_offer(some());
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(decode_offer(whole.substr(0, size))) << size;
  EXPECT_FALSE(decode_offer(whole + "x"));
}

TEST(Answer, ComesBackAsItWas) {
  const Answer answer{.place = "/home/me/x",
                      .drafts = "/home/me/d",
                      .rsync = true,
                      .needed = {{0, 4}, {7, 7}},
                      .removed = 2,
                      .removals = {"x", "y"},
                      .waits = true,
                      .edited = 1,
                      .kept = {"a"},
                      .theirs = {"b"},
                      .remarks = {"r"}};
  EXPECT_EQ(parse_answer(print_answer(answer), 8).value(), answer);
  EXPECT_EQ(print_answer(answer),
            R"({"place":"/home/me/x","drafts":"/home/me/d","rsync":true,"needed":[0,4,7,7],)"
            R"("removed":2,"edited":1,"waits":true,"removals":["x","y"],"kept":["a"],)"
            R"("theirs":["b"],"remarks":["r"]})");
}

TEST(Answer, ShowsOnlySomeNamesAndNoControlCodes) {
  Answer answer{.place = "/x", .drafts = ""};
  answer.kept = std::vector<std::string>(1001, "a\x1b[2J");
  answer.remarks = std::vector<std::string>(1001, "r\n");
  const auto read = parse_answer(print_answer(answer), 0).value();
  EXPECT_EQ(read.kept, std::vector<std::string>(1000, "a\\x1b[2J"));
  EXPECT_EQ(read.remarks, std::vector<std::string>(1000, "r\\x0a"));
}

TEST(Answer, TellsWhatWentWrong) {
  const auto read = parse_answer(print_answer(fail(Errc::denied, "no", "do")), 8);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "no");
  EXPECT_EQ(read.error().hint, "do");
  EXPECT_EQ(print_answer(fail(Errc::denied, "no", "do")), R"({"error":"no","hint":"do"})");
}

// A host can only name entries of the offer, each once.
TEST(Answer, NamesOnlyWhatWasOffered) {
  const auto parse = [](const std::string& needed) {
    return parse_answer(R"({"place":"/x","removed":0,"edited":0,"needed":)" + needed + "}", 8);
  };
  EXPECT_TRUE(parse("[0,7]"));
  for (const char* needed : {"[0,8]", "[3,2]", "[0,3,3,4]", "[4,5,0,1]", "[0]", "[-1,2]", "[0,1e9]",
                             "[\"0\",1]", "7", "null"})
    EXPECT_FALSE(parse(needed)) << needed;
  EXPECT_FALSE(parse_answer("", 8));
  EXPECT_FALSE(parse_answer("{}", 8));
}

TEST(Answer, PicksWhatIsNeeded) {
  const Manifest manifest = {{.path = "a"}, {.path = "b"}, {.path = "c"}};
  EXPECT_EQ(pick(manifest, {{0, 0}, {2, 2}}), (Manifest{{.path = "a"}, {.path = "c"}}));
  EXPECT_TRUE(pick(manifest, {}).empty());
}

}  // namespace
}  // namespace lockstep::sync
