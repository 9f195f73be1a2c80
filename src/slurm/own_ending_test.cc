#include "slurm/own_ending.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

constexpr const char* kReport = R"({"schema":2,"node":"n2","outcome":"failed","reason":null,
  "root_cause":{"rank":3,"host":"n2","exit_code":7,"signal":null,"time_ms":5000,"message":
  "Traceback:\n  x\nValueError: \u001b[31mempty\n","stderr_log":"/w/3/stderr.log","notes":["core dumped"],
  "stderr_tail":["1","2","3","4","5","6","7","8","\u001b]0;x\u0007"],
  "others":["the other 7 ranks were in all_reduce, \u001btrain.py:88"],"after_stop":false}})";

Explained ended(const char* state, int code) {
  Explained job;
  job.job.id = job.job.job = "12";
  job.job.state = parse_job_state(state);
  job.job.exit_code = code;
  job.said = explain(job.job, {});
  job.ids = {"12"};
  return job;
}

OwnEnding own(std::string_view cause, int code) {
  OwnEnding own;
  own.state.stage = Stage::ended;
  own.state.job = "12";
  own.state.cause = cause;
  own.state.words = "n3 is gone\x1b[2J";
  own.state.code = code;
  own.state.started_ms = 1000;
  own.state.ended_ms = 91'000;
  return own;
}

TEST(OwnEnding, TheWorkerThatFailedFirst) {
  const auto culprit = read_culprit(kReport);
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->rank, 3);
  EXPECT_EQ(culprit->how, "exited with 7");
  EXPECT_EQ(culprit->message, "ValueError: \\x1b[31mempty");
  EXPECT_EQ(culprit->log, "/w/3/stderr.log");
  ASSERT_EQ(culprit->last_words.size(), 8U);
  EXPECT_EQ(culprit->last_words.front(), "2");
  EXPECT_EQ(culprit->last_words.back(), "\\x1b]0;x\\x07");
  for (const char* nothing :
       {"", "[]", R"({"outcome":"failed","root_cause":null})",
        R"({"outcome":"failed","root_cause":{"exit_code":0}})",
        R"({"outcome":"failed","reason":"n1 is gone","root_cause":{"exit_code":1}})"})
    EXPECT_FALSE(read_culprit(nothing)) << nothing;
}

TEST(OwnEnding, TakesThePlaceOfTheExitCode) {
  OwnEnding ending = own("worker", 7);
  ending.culprit = read_culprit(kReport);
  ending.state.earlier = {"node lost", "time limit"};
  Explained job = ended("FAILED", 7);
  add_own_words(ending, job);
  EXPECT_EQ(job.said.why, "rank 3 on n2 exited with 7 after 2 min: ValueError: \\x1b[31mempty");
  const std::string text = why_text({job}, 0);
  EXPECT_NE(text.find("  log     /w/3/stderr.log\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  said    2\n          3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  others  the other 7 ranks were in all_reduce, \\x1btrain.py:88\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  before  2 runs ended: node lost, time limit\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(why_json({job})["jobs"][0]["facts"]["log"][0], "/w/3/stderr.log");
}

TEST(OwnEnding, IsToldWhileSlurmStillCompletesTheJob) {
  OwnEnding ending = own("worker", 7);
  ending.culprit = read_culprit(kReport);
  Explained job = ended("COMPLETING", 7);
  add_own_words(ending, job);
  EXPECT_TRUE(job.said.why.starts_with("rank 3 on n2 exited with 7")) << job.said.why;
  // The job was queued again, and runs.
  job = ended("RUNNING", 0);
  add_own_words(ending, job);
  EXPECT_FALSE(job.said.why.starts_with("rank 3")) << job.said.why;
}

TEST(OwnEnding, CausesThatAreNoWorkers) {
  Explained job = ended("FAILED", 124);
  add_own_words(own("time limit", 124), job);
  EXPECT_EQ(job.said.why, "the time limit was near, and the workers were stopped after 2 min");
  job = ended("FAILED", 1);
  add_own_words(own("node lost", 1), job);
  EXPECT_EQ(job.said.why, "n3 is gone\\x1b[2J after 2 min");
  ASSERT_FALSE(job.said.advice.empty());
  EXPECT_NE(job.said.advice[0].find("--spare 1"), std::string::npos);
  job = ended("FAILED", 1);
  add_own_words(own("hang", 1), job);
  EXPECT_EQ(job.said.why, "n3 is gone\\x1b[2J after 2 min");
  ASSERT_FALSE(job.said.advice.empty());
  EXPECT_NE(job.said.advice[0].find("--on-hang restart"), std::string::npos);
  // Slurm knows better why the job was stopped.
  job = ended("CANCELLED", 0);
  const std::string why = job.said.why;
  add_own_words(own("stopped", 143), job);
  EXPECT_EQ(job.said.why, why);
}

TEST(OwnEnding, OtherJobsAndRunsAreLeftAlone) {
  Explained job = ended("FAILED", 7);
  const std::string why = job.said.why;
  OwnEnding other = own("node lost", 1);
  other.state.job = "13";
  add_own_words(other, job);
  EXPECT_EQ(job.said.why, why);
  // The job was queued again, and Slurm has ended the new run since.
  OwnEnding requeued = own("node lost", 1);
  requeued.state.stage = Stage::requeued;
  add_own_words(requeued, job);
  EXPECT_EQ(job.said.why, why);
  ASSERT_EQ(job.facts.size(), 1U);
  EXPECT_EQ(job.facts[0].line, "one run ended: node lost");
}

TEST(OwnEnding, AChainSaysAsWhatItHasRun) {
  Explained job = ended("FAILED", 7);
  OwnEnding chained = own("time limit", 124);
  chained.state.stage = Stage::requeued;
  chained.state.job = "11";
  chained.state.next = "12";
  chained.state.jobs = {"10", "10"};
  chained.state.earlier = {"time limit", "preempted"};
  chained.state.chain = 5;
  add_own_words(chained, job);
  ASSERT_EQ(job.facts.size(), 2U);
  EXPECT_EQ(job.facts[0].line, "3 runs ended: time limit, preempted, time limit");
  EXPECT_EQ(job.facts[1].line, "earlier job 10, 11; continued 2 of 5 times after a time limit");
  chained.state.chain = 0;
  job.facts.clear();
  add_own_words(chained, job);
  EXPECT_EQ(job.facts[1].line, "earlier job 10, 11; continues after every time limit");
}

TEST(OwnEnding, AJobThatSlurmHasForgotten) {
  const auto job = explain_forgotten(own("node lost", 1), "train");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->said.why, "n3 is gone\\x1b[2J after 2 min");
  EXPECT_EQ(job->said.outlook, Outlook::ended);
  OwnEnding runs = own("", 0);
  runs.state.stage = Stage::running;
  EXPECT_FALSE(explain_forgotten(runs, "train"));
}

}  // namespace
}  // namespace lockstep::slurm
