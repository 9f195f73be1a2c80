#include "agent/job_history.h"

#include <gtest/gtest.h>

namespace lockstep::agent {
namespace {

AttemptStart start(std::int64_t at_ms, int restarts, int nodes = 2) {
  return {.at_ms = at_ms, .restarts = restarts, .nodes = nodes, .workers = 1, .world_size = nodes};
}

TEST(JobHistory, TellsRestartsFromChangesOfNodes) {
  JobHistory history(1000);
  history.attempt_started(start(2000, 0));
  history.logs_in("/logs/attempt_0");
  history.attempt_ends(AttemptEnd::worker, "rank 0 on a failed (exitcode: 3)");
  history.workers_ended(3000);
  history.attempt_started(start(4000, 1));
  history.attempt_ends(AttemptEnd::nodes, "b is gone");
  history.workers_ended(5000);
  history.attempt_started(start(6000, 1, 1));
  history.job_ended(9000);

  ASSERT_EQ(history.attempts().size(), 3U);
  EXPECT_EQ(history.attempts()[0].log_dir, "/logs/attempt_0");
  EXPECT_EQ(history.attempts()[0].why, "rank 0 on a failed (exitcode: 3)");
  EXPECT_EQ(history.attempts()[0].end_ms, 3000);
  EXPECT_FALSE(history.attempts()[0].counted);
  EXPECT_TRUE(history.attempts()[1].counted);
  EXPECT_FALSE(history.attempts()[2].counted);
  EXPECT_EQ(history.attempts()[2].end, AttemptEnd::none);
  EXPECT_EQ(history.attempts()[2].end_ms, 9000);
  ASSERT_EQ(history.node_changes().size(), 1U);
  EXPECT_EQ(history.node_changes()[0].why, "b is gone");
  EXPECT_EQ(history.node_changes()[0].at_ms, 5000);
  EXPECT_EQ(history.node_changes()[0].nodes_before, 2);
  EXPECT_EQ(history.node_changes()[0].nodes_after, 1);
  EXPECT_EQ(history.restarts(), 1);
  EXPECT_EQ(history.duration_ms(), 8000);
}

TEST(JobHistory, TheFirstReasonCountsUnlessALostNodeExplainsIt) {
  JobHistory history(0);
  history.attempt_ends(AttemptEnd::signal, "too early");
  history.attempt_started(start(0, 0));
  history.attempt_ends(AttemptEnd::worker, "rank 0 failed");
  history.attempt_ends(AttemptEnd::signal, "SIGTERM");
  EXPECT_EQ(history.attempts()[0].why, "rank 0 failed");
  history.attempt_ends(AttemptEnd::nodes, "b is gone", true);
  EXPECT_EQ(history.attempts()[0].why, "b is gone");
  EXPECT_EQ(attempt_end_word(history.attempts()[0].end), "nodes");
}

TEST(JobHistory, WorkersThatEndedWellMayBeAskedAgain) {
  JobHistory history(0);
  history.attempt_started(start(0, 0));
  history.workers_ended(100);
  history.attempt_ends(AttemptEnd::nodes, "rank 3 on b failed");
  history.attempt_started(start(500, 1));
  EXPECT_EQ(history.attempts()[0].end_ms, 100);
  EXPECT_EQ(history.attempts()[0].end, AttemptEnd::nodes);
  EXPECT_TRUE(history.attempts()[1].counted);
}

TEST(JobHistory, KeepsTheLatestAttempts) {
  JobHistory history(0);
  for (int i = 0; i < 3000; ++i)
    history.attempt_started(start(i, i / 2));
  EXPECT_EQ(history.attempts().size(), JobHistory::kMostKept);
  EXPECT_EQ(history.attempts().back().start.at_ms, 2999);
  EXPECT_EQ(history.attempts_total(), 3000);
  EXPECT_EQ(history.node_changes_total(), 1500);
  EXPECT_EQ(history.node_changes().size(), JobHistory::kMostKept);
}

TEST(JobHistory, OnlyLongOrRestartedJobsGetALastLine) {
  JobHistory none(0);
  none.job_ended(60'000);
  EXPECT_FALSE(is_worth_a_line(none));
  JobHistory brief(0);
  brief.attempt_started(start(0, 0));
  brief.job_ended(10'000);
  EXPECT_FALSE(is_worth_a_line(brief));
  brief.job_ended(10'001);
  EXPECT_TRUE(is_worth_a_line(brief));
  JobHistory again(0);
  again.attempt_started(start(0, 0));
  again.attempt_started(start(10, 0));
  again.job_ended(20);
  EXPECT_TRUE(is_worth_a_line(again));
  JobHistory newcomer(0);  // this node joined after a restart
  newcomer.attempt_started(start(0, 1));
  newcomer.job_ended(20);
  EXPECT_TRUE(is_worth_a_line(newcomer));
}

TEST(JobHistory, LastLine) {
  JobHistory history(0);
  history.attempt_started(start(0, 0));
  history.attempt_started(start(1, 1));
  history.job_ended(192'300);
  EXPECT_EQ(last_line(history, "succeeded", "/tmp/x"),
            "the job succeeded after 3 min 12 s, with 1 restart; logs: /tmp/x");
  EXPECT_EQ(last_line(history, "succeeded", "none", "goodput 91 %",
                      "straggler: rank 3 (node n1) for 1 min 5 s", "5 min ago: 12.0 s"),
            "the job succeeded after 3 min 12 s, with 1 restart; goodput 91 %; "
            "straggler: rank 3 (node n1) for 1 min 5 s; last run 5 min ago: 12.0 s; logs: none");
  history.attempt_started(start(2, 1, 1));
  history.attempt_started(start(2, 1, 2));
  history.attempt_started(start(3, 2, 2));
  EXPECT_EQ(last_line(history, "interrupted", "none"),
            "the job was interrupted after 3 min 12 s, with 2 restarts and 2 changes of nodes; "
            "logs: none");
}

TEST(JobHistory, Durations) {
  EXPECT_EQ(duration_text(0), "0.0 s");
  EXPECT_EQ(duration_text(59'940), "59.9 s");
  EXPECT_EQ(duration_text(59'960), "1 min 0 s");
  EXPECT_EQ(duration_text(3'600'000), "1 h 0 min");
  EXPECT_EQ(duration_text(183'840'000), "2 d 3 h 4 min");
}

}  // namespace
}  // namespace lockstep::agent
