#include "agent/job_end.h"

#include <gtest/gtest.h>

#include <signal.h>

namespace lockstep::agent {
namespace {

WorkerFailure failed(int rank, int code, std::int64_t seen_ms) {
  WorkerFailure result;
  result.global_rank = rank;
  result.host = "n1";
  result.exit_code = code;
  result.seen_ms = seen_ms;
  return result;
}

JobEnd job_end(Outcome outcome) {
  JobEnd end;
  end.outcome = outcome;
  end.node = "n1";
  return end;
}

int code_of(const JobEnd& end, launch::ExitCodeMode mode = launch::ExitCodeMode::torchrun) {
  return exit_code(end, own_report(end), mode);
}

TEST(JobEnd, ExitCodesOfJobsWithoutAFailedWorker) {
  EXPECT_EQ(code_of(job_end(Outcome::succeeded)), 0);
  EXPECT_EQ(code_of(job_end(Outcome::spare)), 0);
  EXPECT_EQ(code_of(job_end(Outcome::spawn_failed)), 1);
  EXPECT_EQ(code_of(job_end(Outcome::no_rendezvous)), 1);
  JobEnd end = job_end(Outcome::signaled_early);
  end.signal = SIGTERM;
  EXPECT_EQ(code_of(end), 143);
  end.outcome = Outcome::signaled;
  EXPECT_EQ(code_of(end), 1);
  end.default_signal = true;
  EXPECT_EQ(code_of(end), 143);
}

TEST(JobEnd, TheWorkersOwnExitCodeOnlyWhereItWasAskedFor) {
  JobEnd end = job_end(Outcome::failed);
  end.failures = {failed(1, 7, 2000), failed(0, -SIGSEGV, 1000)};
  EXPECT_EQ(code_of(end), 1);
  EXPECT_EQ(code_of(end, launch::ExitCodeMode::worker), 128 + SIGSEGV) << "the first one counts";
  end.failures.clear();
  EXPECT_EQ(code_of(end, launch::ExitCodeMode::worker), 1);
}

TEST(JobEnd, WhatEndedTheJobBesideWorkers) {
  JobEnd end = job_end(Outcome::signaled);
  end.signal = SIGINT;
  EXPECT_EQ(own_report(end).event, "n1 was ended by SIGINT");
  EXPECT_FALSE(own_report(end).event_counts);

  end = job_end(Outcome::spawn_failed);
  end.start_error = Error{Errc::not_found, "no such program", "give its path"};
  EXPECT_EQ(own_report(end).event, "workers could not be started: no such program; give its path");
  EXPECT_TRUE(own_report(end).event_counts);

  end = job_end(Outcome::no_rendezvous);
  end.rendezvous_error = Error{Errc::timeout, "nobody came", ""};
  EXPECT_EQ(own_report(end).event, "nobody came");
  EXPECT_TRUE(own_report(end).event_counts);

  end = job_end(Outcome::peer_failed);
  end.why_stopped = "n2 is gone";
  end.others = {"ranks 0-3 were in all_reduce, train.py:88"};
  EXPECT_EQ(own_report(end).event, "n2 is gone");
  EXPECT_NE(
      format_report(own_report(end)).find("  n2 is gone\n  others    : ranks 0-3 were in all"),
      std::string::npos);
  EXPECT_EQ(own_report(end).outcome, "failed");
}

TEST(JobEnd, AGoodJobReportsNoFailureOfItsLastAttempt) {
  JobEnd end = job_end(Outcome::succeeded);
  end.failures = {failed(0, 1, 1000)};
  EXPECT_TRUE(own_report(end).failures.empty());
  EXPECT_EQ(own_report(end).outcome, "succeeded");
}

TEST(JobEnd, TheRootIsSoughtOnTheNodeThatFailedFirst) {
  JobEnd end = job_end(Outcome::failed);
  end.failures = {failed(0, 1, 9000)};
  end.stop_sent_ms = 9001;
  const FailureReport own = own_report(end);
  JobEnd other = job_end(Outcome::failed);
  other.failures = {failed(2, 5, 9500), failed(3, 6, 9600)};
  const std::vector<rendezvous::NodeReport> nodes{{"n2", 1, failures_json(own_report(other))},
                                                  {"n3", 2, "nonsense"},
                                                  {"n1", 0, failures_json(own)}};
  const FailureReport whole = whole_report(own, nodes);
  ASSERT_EQ(whole.failures.size(), 3U);
  EXPECT_EQ(whole.root_among, 2U);
  EXPECT_FALSE(whole.stop_sent_ms) << "clocks of different machines are not compared";
  EXPECT_EQ(exit_code(end, whole, launch::ExitCodeMode::worker), 5);
  EXPECT_EQ(whole_report(own, {}).failures.size(), 1U);
}

}  // namespace
}  // namespace lockstep::agent
