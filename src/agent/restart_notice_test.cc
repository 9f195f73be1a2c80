#include "agent/restart_notice.h"

#include <gtest/gtest.h>

namespace lockstep::agent {
namespace {

JobHistory history_ended_by(AttemptEnd end, const std::string& why) {
  JobHistory history(0);
  history.attempt_started({});
  history.attempt_ends(end, why);
  return history;
}

FailureReport one_failure() {
  FailureReport report;
  WorkerFailure failure;
  failure.global_rank = 3;
  failure.host = "n1";
  failure.exit_code = 1;
  failure.stdout_log = "/logs/3/stdout.log";
  report.failures = {failure};
  return report;
}

TEST(RestartNotice, NamesTheWorkerThatFailedAndItsLog) {
  FailureReport before = one_failure();
  const JobHistory history = history_ended_by(AttemptEnd::worker, "rank 3 on n1 failed");
  EXPECT_EQ(restart_notice({.restarts = 1, .restarts_left = 2}, history, before),
            "restarting all workers of this node (restart 1 of 3): rank 3 on n1 failed "
            "(exitcode: 1); log: /logs/3/stdout.log");
  before.failures[0].stderr_log = "/logs/3/stderr.log";
  EXPECT_NE(
      restart_notice({.restarts = 3}, history, before)
          .find("(restart 3 of 3): rank 3 on n1 failed (exitcode: 1); log: /logs/3/stderr.log"),
      std::string::npos);
}

TEST(RestartNotice, NamesWhatElseEndedTheAttempt) {
  const JobHistory history = history_ended_by(AttemptEnd::nodes, "n2 is gone");
  EXPECT_EQ(restart_notice({.counted = false, .nodes = 1}, history, one_failure()),
            "starting the workers of this node again with 1 node (this is not counted as a "
            "restart): n2 is gone");
  EXPECT_EQ(restart_notice({.counted = false, .nodes = 3}, JobHistory(0), {}),
            "starting the workers of this node again with 3 nodes (this is not counted as a "
            "restart)");
}

}  // namespace
}  // namespace lockstep::agent
