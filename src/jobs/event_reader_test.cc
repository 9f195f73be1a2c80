#include "jobs/event_reader.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <utility>

namespace lockstep::jobs {
namespace {

using Kind = status::JobEventKind;

// A job whose agents answer from rings.
class JobWithRings : public Job {
 public:
  JobWithRings() : Job({}) {}
  Result<JobStatus> status() override { return JobStatus{}; }
  Result<Explanation> why() override { return Explanation{}; }
  Result<Followed> follow(const FollowOptions& /*options*/) override { return Followed{}; }
  Result<JobStatus> cancel() override { return JobStatus{}; }
  Result<Resumed> resume(const std::vector<std::string>& /*env*/) override { return Resumed{}; }
  Result<std::vector<status::EventAnswer>> events(std::int64_t after) override {
    if (++questions == fails_at) return Failure(Error{error, "no answer", {}, 0});
    std::vector<status::EventAnswer> answers;
    for (auto& [agent, ring] : rings)
      answers.push_back(*status::read_event_answer(ring.answer(agent, agent, after, 500)));
    return answers;
  }
  std::chrono::seconds pause() const override { return pause_; }

  void add(const std::string& agent, std::int64_t ms, Kind kind = Kind::training) {
    rings[agent].add({.time_ms = ms, .kind = kind, .agent = agent, .node = agent});
  }

  std::map<std::string, status::EventRing> rings;
  int questions = 0;
  int fails_at = 0;  // this question
  Errc error = Errc::unavailable;
  std::chrono::seconds pause_{0};
};

std::vector<std::int64_t> times(EventReader& reader) {
  const auto events = reader.next().value();
  std::vector<std::int64_t> times;
  times.reserve(events.size());
  for (const status::JobEvent& event : events)
    times.push_back(event.time_ms);
  return times;
}

using Times = std::vector<std::int64_t>;

TEST(EventReaders, MergeTheAgentsByTime) {
  JobWithRings job;
  EventReader reader(job);
  EXPECT_EQ(times(reader), Times{});
  EXPECT_FALSE(reader.answered());
  job.add("a", 10);
  job.add("b", 5);
  job.add("a", 30);
  job.add("b", 20);
  EXPECT_EQ(times(reader), (Times{5, 10, 20, 30}));
  EXPECT_TRUE(reader.answered());
  EXPECT_EQ(times(reader), Times{});
  for (int i = 0; i < 5; ++i)
    job.add("a", 40 + i);  // the other agent has smaller numbers
  job.add("b", 42);
  EXPECT_EQ(times(reader), (Times{40, 41, 42, 42, 43, 44}));
}

TEST(EventReaders, AskAnewForAnAgentThatCameLater) {
  JobWithRings job;
  EventReader reader(job);
  for (int i = 0; i < 9; ++i)
    job.add("a", 10 + i);
  EXPECT_EQ(times(reader).size(), 9U);
  job.rings.erase("a");
  job.add("b", 50);
  EXPECT_EQ(times(reader), Times{50});
  job.rings.erase("b");
  for (int i = 0; i < 5; ++i)
    job.add("c", 60 + i);  // more than b had
  EXPECT_EQ(times(reader), (Times{60, 61, 62, 63, 64}));
}

TEST(EventReaders, ALongAnswerIsReadInParts) {
  JobWithRings job;
  EventReader reader(job);
  for (int i = 1; i <= 100; ++i) {
    job.add("a", i);
    if (i < 5) job.add("b", i);
  }
  EXPECT_EQ(times(reader).size(), 104U);
  EXPECT_GT(job.questions, 10);
}

TEST(EventReaders, AJobThatNeedsPausesIsAskedOnceACall) {
  JobWithRings job;
  job.pause_ = std::chrono::seconds(10);
  int pauses = 0;
  EventReader reader(job, [&](std::chrono::milliseconds time) {
    EXPECT_EQ(time, std::chrono::seconds(10));
    ++pauses;
    return Status();
  });
  for (int i = 1; i <= 20; ++i)
    job.add("a", i);
  const auto first = times(reader);
  EXPECT_EQ(job.questions, 1);
  EXPECT_LT(first.size(), 10U);
  EXPECT_FALSE(reader.ended());
  const auto rest = reader.all().value();
  EXPECT_EQ(first.size() + rest.size(), 20U);
  EXPECT_GT(job.questions, 3);
  EXPECT_EQ(pauses, job.questions - 2) << "the caller pauses between two calls";
}

TEST(EventReaders, ASignalEndsThePauses) {
  JobWithRings job;
  job.pause_ = std::chrono::seconds(10);
  EventReader reader(job, [](std::chrono::milliseconds) -> Status {
    return Failure(Error{Errc::canceled, "stopped", {}, 2});
  });
  for (int i = 1; i <= 20; ++i)
    job.add("a", i);
  EXPECT_EQ(reader.all().error().sys, 2);
  EXPECT_EQ(job.questions, 1);
}

TEST(EventReaders, PartsAreKeptIfALaterQuestionFails) {
  for (const Errc error : {Errc::unavailable, Errc::canceled}) {
    JobWithRings job;
    job.error = error;
    for (int i = 1; i <= 20; ++i)
      job.add("a", i);
    EventReader reader(job);
    job.fails_at = 2;
    auto first = reader.next();
    EXPECT_EQ(static_cast<bool>(first), error == Errc::unavailable) << "a signal is not hidden";
    const std::size_t parts = first ? first->size() : 0;
    EXPECT_EQ(parts + times(reader).size(), 20U);
    for (int i = 21; i <= 40; ++i)
      job.add("a", i);
    job.fails_at = job.questions + 2;
    EXPECT_EQ(code_of(reader.all()), error);
    EXPECT_EQ(reader.all()->size(), 20U);
    job.fails_at = job.questions + 1;
    EXPECT_EQ(code_of(reader.next()), error) << "there is no part";
  }
}

// Each answer has one event and promises more.
class JobThatLies : public JobWithRings {
 public:
  Result<std::vector<status::EventAnswer>> events(std::int64_t after) override {
    ++questions;
    return std::vector<status::EventAnswer>{
        {.agent = "a", .more = true, .events = {{.agent = "a", .number = after + 1}}}};
  }
};

TEST(EventReaders, AHostThatAlwaysHasMoreIsLeft) {
  JobThatLies job;
  EventReader reader(job);
  EXPECT_EQ(times(reader).size(), 100U);
  EXPECT_EQ(job.questions, 100);
}

TEST(EventReaders, TheEndIsThatOfAllAgents) {
  JobWithRings job;
  EventReader reader(job);
  job.add("a", 1, Kind::ended);
  job.add("b", 1);
  EXPECT_EQ(times(reader).size(), 2U);
  EXPECT_FALSE(reader.ended());
  job.add("b", 2, Kind::ended);
  EXPECT_EQ(times(reader).size(), 1U);
  EXPECT_TRUE(reader.ended());
  EXPECT_EQ(times(reader).size(), 0U);
  EXPECT_TRUE(reader.ended());
}

}  // namespace
}  // namespace lockstep::jobs
