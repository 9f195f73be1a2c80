#include "status/job_event.h"

#include "status/event_ring.h"

#include <gtest/gtest.h>

namespace lockstep::status {
namespace {

JobEvent some_event() {
  return {.time_ms = 1'790'000'000'123,
          .kind = JobEventKind::failed,
          .agent = "ab12cd34",
          .number = 7,
          .attempt = 2,
          .node = "gpu-1",
          .rank = 3,
          .words = "rank 3 on gpu-1 failed: \"x\"",
          .numbers = {{"exit_code", 1}}};
}

TEST(JobEvents, AreOneDocumentedLine) {
  EXPECT_EQ(job_event_json(some_event()),
            R"({"event":"failed","time_ms":1790000000123,"agent":"ab12cd34","number":7,)"
            R"("attempt":2,"node":"gpu-1","rank":3,)"
            R"("words":"rank 3 on gpu-1 failed: \"x\"","numbers":{"exit_code":1}})");
}

TEST(JobEvents, AreReadBack) {
  const JobEvent event = some_event();
  const auto again = read_job_event(job_event_json(event));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(job_event_json(*again), job_event_json(event));
  EXPECT_EQ(again->rank, 3);
  EXPECT_EQ(again->number_of("exit_code"), 1);
  EXPECT_EQ(again->number_of("world", 8), 8);
  JobEvent of_node = event;
  of_node.rank.reset();
  EXPECT_FALSE(read_job_event(job_event_json(of_node))->rank);
}

TEST(JobEvents, EveryKindHasItsWord) {
  for (std::size_t i = 0; i < kEventWords.size(); ++i) {
    JobEvent event = some_event();
    event.kind = static_cast<JobEventKind>(i);
    EXPECT_EQ(read_job_event(job_event_json(event))->kind, event.kind) << kEventWords[i];
  }
}

TEST(JobEvents, ALaterKindStaysReadable) {
  const auto event = read_job_event(R"({"event":"swapped","time_ms":5,"words":"x","new":[1]})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, JobEventKind::other);
  EXPECT_EQ(event->words, "swapped: x");
}

TEST(JobEvents, HostileTextStaysAShortPrintableLine) {
  JobEvent event = some_event();
  event.words = std::string(100'000, '"') + "\n\x1b[31m";
  event.node = "\x1b]0;x\n\xff" + std::string(10'000, '\\');
  for (int i = 0; i < 1000; ++i)
    event.numbers["n" + std::to_string(i)] = i;
  const std::string line = job_event_json(event);
  EXPECT_LE(line.size(), 4096U);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto again = read_job_event(R"({"event":"a\u001b","time_ms":1,"node":"b\u001b\nc"})");
  ASSERT_TRUE(again);
  EXPECT_EQ(job_event_text(*again).find('\x1b'), std::string::npos);
  EXPECT_EQ(job_event_text(*again).find('\n'), std::string::npos);
}

TEST(JobEvents, OtherLinesAreRefused) {
  for (const char* wrong : {"", "x", "[]", "{}", R"({"event":"failed"})", R"({"time_ms":5})",
                            R"({"event":7,"time_ms":5})", R"({"event":"failed","time_ms":-5})"})
    EXPECT_FALSE(read_job_event(wrong)) << wrong;
}

TEST(EventRing, AnswersWhatCameAfterANumber) {
  EventRing ring;
  for (int i = 1; i <= 5; ++i)
    ring.add({.time_ms = 100 + i, .kind = JobEventKind::training});
  const auto all = read_event_answer(ring.answer("ab", "n1", 0));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->agent, "ab");
  EXPECT_EQ(all->node, "n1");
  EXPECT_EQ(all->events.size(), 5U);
  EXPECT_EQ(all->next, 5);
  const auto later = read_event_answer(ring.answer("ab", "n1", 3));
  ASSERT_EQ(later->events.size(), 2U);
  EXPECT_EQ(later->events[0].number, 4);
  const auto none = read_event_answer(ring.answer("ab", "n1", 9));
  EXPECT_TRUE(none->events.empty());
  EXPECT_EQ(none->next, 9);
}

TEST(EventRing, ALongAnswerComesInParts) {
  EventRing ring;
  for (int i = 1; i <= 100; ++i)
    ring.add({.time_ms = 100 + i, .kind = JobEventKind::training});
  std::int64_t after = 0;
  std::size_t seen = 0;
  int parts = 0;
  while (true) {
    const auto part = read_event_answer(ring.answer("ab", "n1", after, 2000));
    seen += part->events.size();
    after = part->next;
    ++parts;
    if (!part->more) break;
  }
  EXPECT_EQ(seen, 100U);
  EXPECT_GT(parts, 3);
}

TEST(EventRing, ForgetsWhatIsOldOrTooMuch) {
  EventRing ring({.age_ms = 1000, .bytes = 2000});
  for (int i = 0; i < 1000; ++i)
    ring.add({.time_ms = 1 + i, .kind = JobEventKind::waiting, .words = std::string(100, 'x')});
  EXPECT_LE(ring.bytes(), 2000U);
  EXPECT_EQ(ring.last(), 1000);
  ring.add({.time_ms = 5000, .kind = JobEventKind::ended});
  EXPECT_EQ(read_event_answer(ring.answer("", "", 0))->events.size(), 1U);
}

TEST(EventRing, PrintsNothingBeforeSomebodyAsks) {
  EventRing ring;
  EXPECT_EQ(ring.add({.time_ms = 1, .kind = JobEventKind::started}), 1);
  EXPECT_EQ(ring.add({.time_ms = 2, .kind = JobEventKind::ended}), 2);
  EXPECT_EQ(ring.bytes(), 0U);
  EXPECT_EQ(read_job_event(ring.newest())->number, 2);
  EXPECT_EQ(read_event_answer(ring.answer("", "", 0))->events.size(), 2U);
  // The unprinted events of a long job are bounded, too.
  const std::size_t printed = ring.bytes();
  for (int i = 0; i < 1000; ++i)
    ring.add({.time_ms = 3, .kind = JobEventKind::waiting});
  EXPECT_GT(ring.bytes(), 100 * printed);
}

TEST(EventRing, GivesTheLatestForAReport) {
  EventRing ring;
  for (int i = 1; i <= 10; ++i)
    ring.add({.time_ms = i, .kind = JobEventKind::training, .words = std::string(100, 'x')});
  const auto last = ring.latest(3, 10'000);
  ASSERT_EQ(last.size(), 3U);
  EXPECT_EQ(read_job_event(last[0])->number, 8);
  EXPECT_EQ(read_job_event(last[2])->number, 10);
  EXPECT_EQ(ring.latest(100, 10'000).size(), 10U);
  EXPECT_EQ(ring.latest(100, 2 * last[2].size()).size(), 2U);
  EXPECT_TRUE(ring.latest(100, 5).empty());
  const auto answer = answer_of_report(R"({"events":[)" + last[1] + "," + last[2] + "]}", 9);
  ASSERT_TRUE(answer);
  EXPECT_EQ(read_event_answer(*answer)->events.size(), 1U);
  EXPECT_FALSE(answer_of_report("{}", 0));
}

TEST(EventRing, HostileAnswersAreRefusedOrCleaned) {
  for (const char* wrong : {"", "[]", "{}", R"({"events":5})"})
    EXPECT_FALSE(read_event_answer(wrong)) << wrong;
  const auto some = read_event_answer(
      R"({"agent":5,"node":"a\u001b","events":[1,"x",{},{"event":"hung","time_ms":5}]})");
  ASSERT_TRUE(some);
  EXPECT_EQ(some->events.size(), 1U);
  EXPECT_EQ(some->node.find('\x1b'), std::string::npos);
}

TEST(EventAnswers, AnAgentThatAnswersTwiceIsKnown) {
  const EventAnswer one{.agent = "a1", .node = "n1"};
  EXPECT_FALSE(is_known({}, one));
  EXPECT_TRUE(is_known({one}, {.agent = "a1", .node = "n2"}));
  EXPECT_FALSE(is_known({one}, {.agent = "a2", .node = "n1"}));
}

}  // namespace
}  // namespace lockstep::status
