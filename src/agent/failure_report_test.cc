#include "agent/failure_report.h"

#include "agent/report_json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>

namespace lockstep::agent {
namespace {

WorkerFailure failure(int rank, int exit_code, std::int64_t seen_ms) {
  WorkerFailure result;
  result.global_rank = rank;
  result.local_rank = rank;
  result.host = "node1.example";
  result.pid = 4710 + rank;
  result.exit_code = exit_code;
  result.seen_ms = seen_ms;
  return result;
}

void add_record(WorkerFailure& failure, const char* json) {
  failure.error_file = "/tmp/e/" + std::to_string(failure.local_rank) + "/error.json";
  failure.error = parse_error_record(json);
}

nlohmann::json json_of(const FailureReport& report) {
  return nlohmann::json::parse(report_json(report, JobHistory(0), {}), nullptr, false);
}

class Report : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
    report_.title = "train.py";
    report_.run_id = "job";
  }
  FailureReport report_;
};

TEST_F(Report, RootCauseComesLastAndKeepsItsNumber) {
  report_.stop_sent_ms = 1790000001100;
  report_.failures = {failure(0, 3, 1790000001000), failure(1, -15, 1790000001500)};
  report_.failures[1].after_stop = true;
  add_record(
      report_.failures[0],
      R"({"message": {"message": "m", "extraInfo": {"py_callstack": "Traceback:\n  File\nE: x", "timestamp": "1790000000"}}})");
  EXPECT_EQ(format_report(report_),
            "===============================================\n"
            "train.py FAILED\n"
            "-----------------------------------------------\n"
            "Failures:\n"
            "  <NO_OTHER_FAILURES>\n"
            "  1 worker was stopped: rank 1 on node1.example\n"
            "-----------------------------------------------\n"
            "Root Cause (first observed failure):\n"
            "[0]:\n"
            "  time      : 2026-09-21_14:13:20\n"
            "  host      : node1.example\n"
            "  rank      : 0 (local_rank: 0)\n"
            "  exitcode  : 3 (pid: 4710) \n"
            "  error_file: /tmp/e/0/error.json\n"
            "  traceback : Traceback:\n"
            "    File\n"
            "  E: x\n"
            "===============================================");
  // The long form is torchrun's.
  const std::string all = format_report(report_, {.all = true});
  EXPECT_NE(all.find("Failures:\n"
                     "[1]:\n"
                     "  time      : 2026-09-21_14:13:21\n"
                     "  host      : node1.example\n"
                     "  rank      : 1 (local_rank: 1)\n"
                     "  exitcode  : -15 (pid: 4711)  (SIGTERM)\n"
                     "  error_file: <N/A>\n"
                     "  traceback : Signal 15 (SIGTERM) received by PID 4711\n"
                     "------"),
            std::string::npos)
      << all;
}

TEST_F(Report, NamesTheImage) {
  report_.image = "docker://a/b:1";
  report_.failures = {failure(0, 3, 1000)};
  report_.failures[0].stderr_tail = {"x"};
  EXPECT_NE(format_report(report_).find("\n  image     : docker://a/b:1\n  stderr    : last 1"),
            std::string::npos)
      << format_report(report_);
  EXPECT_EQ(json_of(report_)["image"], "docker://a/b:1");
  report_.failures.clear();
  report_.event = "node2 is gone";
  EXPECT_NE(format_report(report_).find("\n  node2 is gone\n  image     : docker://a/b:1\n"),
            std::string::npos)
      << format_report(report_);
  report_.image.clear();
  EXPECT_TRUE(json_of(report_)["image"].is_null());
}

TEST_F(Report, OfWorkersThatWereStoppedOneLineIsLeft) {
  report_.failures = {failure(7, 1, 1000)};
  report_.failures[0].stderr_tail.assign(20, "loss 1.0");
  for (int rank = 0; rank < 16; ++rank) {
    if (rank == 7) continue;
    auto& stopped = report_.failures.emplace_back(failure(rank, -SIGTERM, 2000));
    stopped.after_stop = true;
    stopped.stderr_tail.assign(20, "loss 1.0");
  }
  const std::string text = format_report(report_);
  EXPECT_NE(text.find("\n  15 workers were stopped: ranks 0-6, 8-15 on node1.example\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 36);
  report_.failures[1].exit_code = -SIGKILL;
  report_.failures[2].exit_code = 143;
  const std::string other = format_report(report_);
  EXPECT_NE(other.find("\n  13 workers were stopped: ranks 2-6, 8-15 on node1.example\n"
                       "  1 worker was stopped by SIGKILL: rank 0 on node1.example\n"
                       "  1 worker failed while it was stopped: rank 1 on node1.example\n"),
            std::string::npos)
      << other;
}

TEST_F(Report, FurtherFailuresAreShortAndInRankOrder) {
  for (const int rank : {30, 5, 29, 4, 28, 3, 27, 2, 26, 1, 25})
    report_.failures.push_back(failure(rank, 1, 9000 - rank));
  report_.failures[1].stderr_tail = {"a", "ValueError: x", " "};
  report_.failures[1].stderr_log = "/logs/5/stderr.log";
  add_record(report_.failures[9], R"({"message": {"message": "KeyError: 'k'", "extraInfo":
      {"py_callstack": "Traceback:\n  File\nKeyError: 'k'", "timestamp": "9"}}})");
  const std::string text = format_report(report_);
  EXPECT_NE(text.find("Failures:\n"
                      "[0]:\n"
                      "  host      : node1.example\n"
                      "  rank      : 1 (local_rank: 1)\n"
                      "  exitcode  : 1 (pid: 4711) \n"
                      "  traceback : KeyError: 'k'\n"
                      "[1]:\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  traceback : ValueError: x\n  logs      : /logs/5/stderr.log\n[5]:\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n  2 workers failed as well: ranks 28-29 on node1.example\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("Root Cause (first observed failure):\n[10]:\n"), std::string::npos) << text;
  std::vector<int> ranks;
  const auto json = json_of(report_);
  for (const auto& each : json["failures"])
    ranks.push_back(each["rank"].get<int>());
  EXPECT_EQ(ranks, (std::vector<int>{1, 2, 3, 4, 5, 25, 26, 27, 28, 29, 30}));
  EXPECT_EQ(json["root_cause"], json["failures"][10]);
}

TEST_F(Report, LogsAreNamedAndATracebackBelowNeedsNoAdvice) {
  report_.failures = {failure(0, 1, 0)};
  report_.failures[0].stderr_log = "/logs/0/stderr.log";
  report_.failures[0].stdout_log = "/logs/0/stdout.log";
  report_.failures[0].stderr_tail = {"x"};
  EXPECT_NE(format_report(report_).find("To enable traceback see"), std::string::npos);
  for (const char* line : {"Traceback (most recent call last):", "  File \"t.py\", line 3"}) {
    report_.failures[0].stderr_tail = {line, "E: x"};
    const std::string text = format_report(report_);
    EXPECT_NE(text.find("  traceback : see stderr below\n"
                        "  logs      : /logs/0/stderr.log\n"
                        "              /logs/0/stdout.log\n"
                        "  stderr    : last 2 lines:\n"),
              std::string::npos)
        << text;
  }
  report_.failures[0].tail_holds_stdout = true;
  EXPECT_NE(format_report(report_).find("  traceback : see output below\n"), std::string::npos);
}

TEST_F(Report, OnlyTheRootCauseIsInColour) {
  report_.failures = {failure(0, 1, 0), failure(1, 1, 1)};
  report_.failures[0].stderr_tail = {"the last words"};
  EXPECT_EQ(format_report(report_).find('\x1b'), std::string::npos);
  const std::string text = format_report(report_, {.colour = true});
  EXPECT_LT(text.find("[1]:"), text.find('\x1b'));
  EXPECT_NE(text.find("\x1b[31mRoot Cause (first observed failure):\x1b[0m\n\x1b[31m[0]:\x1b[0m\n"),
            std::string::npos);
  EXPECT_NE(text.find("\n    the last words\n"), std::string::npos);
  report_.failures.clear();
  report_.event = "node2 is gone";
  EXPECT_NE(format_report(report_, {.colour = true}).find("\x1b[31m  node2 is gone\x1b[0m\n"),
            std::string::npos);
}

TEST_F(Report, BorderIsAsWideAsTheWidestLine) {
  report_.failures = {failure(0, 1, 0)};
  add_record(report_.failures[0], R"({"message": "short", "timestamp": 1})");
  const std::string text = format_report(report_);
  EXPECT_EQ(text.find('\n'), std::string("  error_file: /tmp/e/0/error.json").size());
  EXPECT_NE(text.find("\nFailures:\n  <NO_OTHER_FAILURES>\n-"), std::string::npos);
}

TEST_F(Report, WidthCountsCharactersNotBytes) {
  report_.failures = {failure(0, 1, 0)};
  add_record(report_.failures[0], R"({"message": "ééééééééééééééééééééééééé", "timestamp": 1})");
  EXPECT_EQ(format_report(report_).find('\n'), 14 + 25U);
}

TEST_F(Report, PlainMessagesAreNotIndented) {
  auto plain = failure(0, 1, 0);
  add_record(plain, R"({"message": "a\nb"})");
  EXPECT_EQ(failure_message(plain), "a\nb");
  add_record(plain, "not json\nb");
  EXPECT_EQ(failure_message(plain), "not json\n  b");
}

TEST_F(Report, WithoutARecordTheStderrTailIsShown) {
  report_.failures = {failure(0, -9, 0)};
  report_.failures[0].stderr_tail = {"one", "two"};
  report_.failures[0].notes = {"killed by the kernel's out-of-memory killer"};
  EXPECT_NE(
      format_report(report_).find("  traceback : Signal 9 (SIGKILL) received by PID 4710\n"
                                  "  note      : killed by the kernel's out-of-memory killer\n"
                                  "  stderr    : last 2 lines:\n"
                                  "    one\n"
                                  "    two\n"
                                  "====="),
      std::string::npos);
  add_record(report_.failures[0], R"({"message": "m"})");
  EXPECT_EQ(format_report(report_).find("stderr"), std::string::npos);
}

TEST_F(Report, PlainExitPointsToTheDocumentation) {
  EXPECT_EQ(failure_message(failure(0, 3, 0)),
            "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html");
}

TEST_F(Report, RootCauseIsTheEarliest) {
  EXPECT_EQ(root_cause(report_), std::nullopt);
  report_.failures = {failure(0, 1, 3000), failure(1, 1, 2000), failure(2, 1, 2000)};
  EXPECT_EQ(root_cause(report_), 1U);
  add_record(report_.failures[2], R"({"message": "m", "timestamp": 1})");
  EXPECT_EQ(root_cause(report_), 2U);
}

TEST_F(Report, WhatFollowsTheStopIsNoCause) {
  report_.stop_sent_ms = 3000;
  report_.failures = {failure(0, -15, 2000), failure(1, 1, 3000)};
  report_.failures[0].after_stop = true;  // the clock of the other node cannot be trusted
  EXPECT_EQ(root_cause(report_), 1U);
  add_record(report_.failures[0], R"({"message": "m", "timestamp": 4})");
  EXPECT_EQ(root_cause(report_), 1U);
  add_record(report_.failures[0], R"({"message": "m", "timestamp": 2})");
  EXPECT_EQ(root_cause(report_), 0U);
  report_.failures = {failure(0, -15, 4000)};
  report_.failures[0].after_stop = true;
  EXPECT_EQ(root_cause(report_), 0U);
}

TEST_F(Report, FailedLine) {
  EXPECT_EQ(failed_line(failure(0, 3, 0), "/usr/bin/python3"),
            "failed (exitcode: 3) local_rank: 0 (pid: 4710) of binary: /usr/bin/python3");
}

TEST_F(Report, FailureLineSaysWhatIsKnown) {
  auto one = failure(3, 1, 0);
  EXPECT_EQ(failure_line(one), "rank 3 on node1.example failed (exitcode: 1)");
  one.stderr_tail = {"Traceback", "ValueError: x", ""};
  EXPECT_EQ(failure_line(one), "rank 3 on node1.example failed (exitcode: 1): ValueError: x");
  one.exit_code = -SIGKILL;
  one.notes = {"out of memory"};
  EXPECT_EQ(failure_line(one),
            "rank 3 on node1.example failed (exitcode: -9, SIGKILL): out of memory");
  add_record(one, R"({"message": "first\nlast \u001b[2J\n\n"})");
  EXPECT_EQ(failure_line(one),
            "rank 3 on node1.example failed (exitcode: -9, SIGKILL): last \\x1b[2J");
}

TEST_F(Report, Json) {
  report_.failures = {failure(0, 3, 5), failure(1, -9, 4)};
  report_.failures[0].stderr_tail = {"bad \xff byte"};
  const auto json = json_of(report_);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["schema"], 2);
  EXPECT_EQ(json["outcome"], "failed");
  EXPECT_EQ(json["root_cause"], json["failures"][1]);
  EXPECT_EQ(json["failures"][1]["signal"], "SIGKILL");
  EXPECT_TRUE(json["failures"][0]["signal"].is_null());
  EXPECT_EQ(json["failures"][0]["time_ms"], 5);
  report_.failures.clear();
  report_.outcome = "succeeded";
  const auto good = json_of(report_);
  EXPECT_TRUE(good["root_cause"].is_null());
  EXPECT_TRUE(good["failures"].empty());
}

// A fetch of an image that a signal has stopped is no refusal.
TEST_F(Report, JsonOfALauncherThatDidNotBegin) {
  const auto outcome = [](Errc code) {
    return nlohmann::json::parse(refusal_json("n1", Error{code, "x", {}, 0}))["outcome"];
  };
  EXPECT_EQ(outcome(Errc::denied), "refused");
  EXPECT_EQ(outcome(Errc::canceled), "interrupted");
}

TEST_F(Report, JsonOfTheWay) {
  JobHistory history(1000);
  history.attempt_started(
      {.at_ms = 2000, .nodes = 2, .first_rank = 4, .workers = 2, .world_size = 6});
  history.logs_in("/logs/attempt_0");
  history.attempt_ends(AttemptEnd::nodes, "b is gone");
  history.workers_ended(2500);
  history.attempt_started({.at_ms = 3000, .nodes = 1, .workers = 2, .world_size = 2});
  history.job_ended(9000);
  const auto json =
      nlohmann::json::parse(report_json(report_, history, {"a", "/logs", 3}), nullptr, false);
  EXPECT_EQ(json["duration_ms"], 8000);
  EXPECT_EQ(json["max_restarts"], 3);
  EXPECT_EQ(json["log_dir"], "/logs");
  EXPECT_EQ(json["versions"]["lockstep"], LOCKSTEP_VERSION);
  EXPECT_EQ(json["attempts"][0], nlohmann::json::parse(R"({"restart_count": 0, "is_restart": false,
      "start_ms": 2000, "end_ms": 2500, "duration_ms": 500, "ended_by": "nodes", "why": "b is gone",
      "nodes": 2, "group_rank": 0, "world_size": 6, "ranks": [4, 5], "log_dir": "/logs/attempt_0"})"));
  EXPECT_EQ(json["attempts"][1]["ended_by"], "success");
  EXPECT_TRUE(json["attempts"][1]["why"].is_null());
  EXPECT_EQ(json["node_changes"], nlohmann::json::parse(R"([{"time_ms": 2500, "why": "b is gone",
      "nodes_before": 2, "nodes_after": 1}])"));
}

TEST_F(Report, AnEventIsTheRootCauseWhereNoWorkerFailedByItself) {
  report_.event = "node2 is gone: the connection was closed; 1 node is left of at least 2";
  report_.failures = {failure(0, -SIGTERM, 5), failure(1, -SIGTERM, 4)};
  for (auto& stopped : report_.failures)
    stopped.after_stop = true;
  EXPECT_FALSE(root_cause(report_));
  EXPECT_EQ(format_report(report_), R"(============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (no worker failed by itself):
  node2 is gone: the connection was closed; 1 node is left of at least 2
  2 workers were stopped: ranks 0-1 on node1.example
============================================================)");
  const auto json = json_of(report_);
  EXPECT_EQ(json["reason"], report_.event);
  EXPECT_TRUE(json["root_cause"].is_null());
  EXPECT_EQ(json["stopped"].size(), 2U);
  EXPECT_EQ(json["failures"].size(), 0U);
}

// Holds even if the node that reports first has only stopped workers.
TEST_F(Report, AWorkerThatFailedByItselfIsTheRootCauseOnWhicheverNode) {
  report_.event = "the rendezvous is lost";
  report_.failures = {failure(0, -SIGTERM, 1), failure(1, 7, 4), failure(2, 8, 3)};
  report_.failures[0].after_stop = true;
  report_.root_among = 1;
  EXPECT_EQ(root_cause(report_), 2U);
  EXPECT_EQ(root_event(report_), nullptr);
  EXPECT_TRUE(json_of(report_)["reason"].is_null());
  report_.event_counts = true;
  EXPECT_FALSE(root_cause(report_));
}

TEST_F(Report, AnotherNodesTextCannotSteerTheTerminalNorTheArithmetic) {
  const auto parsed = parse_failures(R"([{"rank": 99999999999999, "local_rank": -99999999999999,
      "host": "a\u001b[2J\n[1]:\nb", "pid": 18446744073709551615, "exit_code": -2147483648,
      "time_ms": -9223372036854775808, "notes": ["x\u0007\ny\u009b2J"], "stderr_tail": ["a\tb\rc", 7]},
      {"exit_code": 3, "error_file": "/e\u001b]0;", "message": "m\u001b\u009b"}])");
  ASSERT_TRUE(parsed) << parsed.error().message;
  report_.failures = *parsed;
  const std::string text = format_report(report_) + format_report(report_, {.all = true}) +
                           failed_line(parsed->at(0), "x");
  EXPECT_EQ(text.find_first_of("\x1b\x07\r"), std::string::npos) << text;
  EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << text;
  EXPECT_NE(text.find("host      : a\\x1b[2J\\x0a[1]:\\x0ab\n"), std::string::npos) << text;
  EXPECT_NE(text.find("    a\tb\\x0dc"), std::string::npos) << text;
  EXPECT_NE(text.find("error_file: /e\\x1b]0;"), std::string::npos) << text;
  EXPECT_EQ(parsed->at(0).exit_code, -255);
  for (const char* nonsense : {"", "{}", "[7]", "[[]]", "nul", "[{\"rank\": 1e999}]", "[\"\xff\"]"})
    EXPECT_FALSE(parse_failures(nonsense)) << nonsense;
  EXPECT_TRUE(parse_failures(R"([{"rank": "1", "host": 5, "stderr_tail": {}, "notes": "x"}])"));
  EXPECT_FALSE(parse_failures(std::string(200'000, '[')));
}

TEST_F(Report, AWorkersTextCannotSteerTheTerminal) {
  WorkerFailure failure;
  failure.exit_code = 1;
  failure.error = parse_error_record(R"({"message": "a\u001b[2J\tb \u009b2J \u00e9"})");
  EXPECT_EQ(failure_message(failure), "a\\x1b[2J\tb \\xc2\\x9b2J \xc3\xa9");
}

}  // namespace
}  // namespace lockstep::agent
