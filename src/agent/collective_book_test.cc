#include "agent/collective_book.h"

#include "looks/looks_testing.h"

#include <gtest/gtest.h>

namespace lockstep::agent {
namespace {

using looks::Millis;
using std::chrono::seconds;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kWall = 1'000'000 * kSecond;

recorder::Entry entry(std::int64_t sequence, bool active, const std::string& name = "all_reduce") {
  return {.group = "0",
          .group_words = "default_pg",
          .sequence = sequence,
          .name = "nccl:" + name,
          .bytes = 268'435'456,
          .created_ns = kWall - 40 * kSecond + sequence,
          .moved_ns = kWall - 40 * kSecond + sequence,
          .active = active};
}
recorder::Dump of(std::vector<recorder::Entry> entries) {
  return {.entries = std::move(entries)};
}
DumpRequest::Answers four(const recorder::Dump& others, const recorder::Dump& rank3) {
  return {.dumps = {{0, others}, {1, others}, {2, others}, {3, rank3}}};
}

looks::Evidence evidence_of(const CollectiveBook& book) {
  looks::Evidence evidence;
  book.add_to(evidence);
  return evidence;
}

TEST(CollectiveBook, RankThatNeverEntered) {
  CollectiveBook book;
  const io::TimePoint now{seconds(100)};
  const auto answers = four(of({entry(1741, false), entry(1742, true)}), of({entry(1741, false)}));
  book.take(answers, 4, kWall, now);
  looks::Evidence evidence = evidence_of(book);
  EXPECT_EQ(evidence.never_entered, std::vector<int>{3});
  EXPECT_FALSE(evidence.all_entered);
  EXPECT_EQ(evidence.collective.at(0), "all_reduce #1742 of default_pg, 268 MB");
  EXPECT_EQ(evidence.collective.at(3), "never entered #1742");
  EXPECT_EQ(
      evidence.sentences,
      std::vector<std::string>{"rank 3 never entered #1742 nccl:all_reduce of default_pg, 268 MB"});
  EXPECT_TRUE(evidence.inside.empty()) << "one answer proves nothing";
  book.take(answers, 4, kWall + 10 * kSecond, now + seconds(10));
  evidence = evidence_of(book);
  EXPECT_EQ(evidence.inside.size(), 3U);
  EXPECT_EQ(evidence.inside.at(0) / seconds(1), 49) << "since the collective began";
}

TEST(CollectiveBook, ARecorderThatMovesProvesNothing) {
  CollectiveBook book;
  const io::TimePoint now{seconds(100)};
  for (int i = 0; i < 5; ++i) {
    const auto dump = of({entry(i, false), entry(i + 1, true)});
    book.take(four(dump, dump), 4, kWall + std::int64_t{10} * i * kSecond, now + seconds(10 * i));
    EXPECT_TRUE(evidence_of(book).inside.empty());
  }
}

TEST(CollectiveBook, AClockThatJumpsDoesNotMakeARankStandStill) {
  CollectiveBook book;
  const io::TimePoint now{seconds(100)};
  const auto dump = of({entry(1, true)});
  for (int i = 0; i < 2; ++i)
    book.take(four(dump, dump), 4, 1, now + seconds(10 * i));
  EXPECT_EQ(evidence_of(book).inside.at(0), seconds(10));
}

TEST(CollectiveBook, MismatchNamesTheFew) {
  CollectiveBook book;
  book.take(four(of({entry(7, true)}), of({entry(7, true, "all_gather")})), 4, kWall,
            io::TimePoint(seconds(1)));
  looks::Evidence evidence = evidence_of(book);
  EXPECT_EQ(evidence.mismatched, std::vector<int>{3});
  EXPECT_EQ(evidence.collective.at(3), "all_gather #7 of default_pg");
  book.take({.dumps = {{0, of({entry(7, true)})}, {1, of({entry(7, true, "all_gather")})}}}, 2,
            kWall, io::TimePoint(seconds(2)));
  EXPECT_TRUE(evidence_of(book).mismatched.empty());
}

TEST(CollectiveBook, NobodyIsToBlameOnlyIfAllAreKnown) {
  CollectiveBook book;
  const auto dump = of({entry(7, true)});
  book.take(four(dump, dump), 4, kWall, io::TimePoint(seconds(1)));
  EXPECT_TRUE(evidence_of(book).all_entered);
  book.take(four(dump, dump), 8, kWall, io::TimePoint(seconds(1)));
  EXPECT_FALSE(evidence_of(book).all_entered);
}

TEST(CollectiveBook, SilenceIsTold) {
  CollectiveBook book;
  book.take({.silent = {3}, .unreadable = {0, 1}, .without = {2}}, 4, kWall,
            io::TimePoint(seconds(1)));
  EXPECT_EQ(evidence_of(book).sentences,
            (std::vector<std::string>{
                "the flight recorder of rank 3 did not answer: stopped, or Python's lock is held",
                "the flight recorders of ranks 0-1 gave a dump that cannot be read"}));
}

TEST(CollectiveBook, AnswersAreForgottenOnceARankHasMoved) {
  looks::FakeJob job(4);
  job.train(3);
  job.others_wait({});
  job.seconds(10);
  CollectiveBook book;
  book.take(four(of({entry(2, true)}), of({entry(1, false)})), 4, kWall, job.now);
  job.seconds(5);
  job.looks[3].stack = looks::stack_of(looks::in_own_code(9));  // not inside
  job.second();
  book.heed(job.folded, job.now);
  EXPECT_TRUE(book.knows());
  job.looks[0].stack = looks::stack_of(looks::in_own_code(9));
  job.second();
  book.heed(job.folded, job.now);
  EXPECT_FALSE(book.knows());
  EXPECT_TRUE(evidence_of(book).never_entered.empty());
}

// Ranks 0 and 1 are on the leader, 2 and 3 on another node, whose clock is an hour ahead.
TEST(CollectiveBook, RanksOfOtherNodesAreCompared) {
  constexpr std::int64_t kAhead = 3600 * kSecond;
  const io::TimePoint now{seconds(100)};
  const auto waits = of({entry(1741, false), entry(1742, true)});
  auto waits_there = waits;
  for (recorder::Entry& each : waits_there.entries)
    each.created_ns += kAhead, each.moved_ns += kAhead;
  CollectiveBook there;
  for (int i = 0; i < 2; ++i)
    there.take({.dumps = {{2, waits_there}, {3, of({entry(1741, false)})}}}, 4,
               kWall + kAhead + std::int64_t{10} * i * kSecond, now + seconds(10 * i));
  ASSERT_FALSE(there.told().empty());
  CollectiveBook leader;
  leader.take({.dumps = {{0, waits}, {1, waits}}}, 4, kWall, now);
  EXPECT_FALSE(evidence_of(leader).all_entered) << "nothing is known of the other ranks";
  leader.hear({{1, recorder::read_summary(there.told(), 4, kWall).value()}}, 4);
  looks::Evidence evidence = evidence_of(leader);
  EXPECT_EQ(evidence.never_entered, std::vector<int>{3});
  EXPECT_EQ(
      evidence.sentences,
      std::vector<std::string>{"rank 3 never entered #1742 nccl:all_reduce of default_pg, 268 MB"});
  EXPECT_EQ(evidence.inside.at(2) / seconds(1), 49) << "by the other node's clock";
  leader.hear({}, 4);
  EXPECT_TRUE(evidence_of(leader).never_entered.empty());
  there.forget();
  EXPECT_TRUE(there.told().empty());
}

TEST(CollectiveBook, AJobOfOneNodeTellsNobody) {
  CollectiveBook book;
  const auto dump = of({entry(7, true)});
  book.take(four(dump, dump), 4, kWall, io::TimePoint(seconds(1)));
  EXPECT_TRUE(book.told().empty());
}

TEST(AskClock, AsksAtHalfOfTheLimitAndLessOftenLater) {
  AskClock clock;
  std::vector<int> asked;
  for (int second = 0; second < 600; ++second)
    if (clock.is_due(seconds(second), seconds(30))) asked.push_back(second);
  ASSERT_GE(asked.size(), 6U);
  EXPECT_EQ(asked[0], 15);
  EXPECT_LE(asked[2], 31);
  EXPECT_GE(asked[5] - asked[4], 14);
  EXPECT_LE(asked.size(), 10U);
  EXPECT_FALSE(clock.is_due(seconds(1), seconds(30)));
  EXPECT_TRUE(clock.is_due(seconds(15), seconds(30)));
  EXPECT_FALSE(AskClock().is_due(seconds(1000), Millis(0)));
}

}  // namespace
}  // namespace lockstep::agent
