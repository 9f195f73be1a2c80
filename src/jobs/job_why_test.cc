#include "jobs/job_why.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::jobs {
namespace {

const KnownJob kJob{.id = "3f0a9c1e", .name = "train", .place = "gpus", .command = "train.py"};

TEST(JobWhy, NamesTheWorkerThatFailedFirst) {
  const JobStatus status{
      .state = JobState::failed,
      .code = 3,
      .nodes = {{.name = "node1", .state = JobState::failed, .code = 3},
                {.name = "node2", .state = JobState::canceled, .code = 143, .canceled = true}}};
  const nlohmann::json report = {
      {"root_cause",
       {{"rank", 7},
        {"host", "node1"},
        {"exit_code", 3},
        {"signal", nullptr},
        {"message",
         "Traceback (most recent call last):\n  File x\nValueError: the batch is empty\n"},
        {"stderr_log", "/logs/7/stderr.log"}}}};
  const Explanation said = explain_job(kJob, status, report);
  EXPECT_EQ(said.text,
            "job 3f0a9c1e (train) on gpus: failed (3)\n"
            "  node1: failed (3)\n"
            "  node2: canceled\n"
            "root cause: rank 7 on node1, exit code 3\n"
            "  ValueError: the batch is empty\n"
            "  log on node1: /logs/7/stderr.log\n"
            "lockstep logs 3f0a9c1e shows the output\n");
  EXPECT_EQ(said.json["root_cause"]["rank"], 7);
  EXPECT_EQ(said.json["code"], 3);
  EXPECT_EQ(said.json["nodes"][1]["state"], "canceled");
}

TEST(JobWhy, ASignalAndTheLastWordsOfAWorkerWithoutAnErrorRecord) {
  const nlohmann::json report = {{"root_cause",
                                  {{"rank", 0},
                                   {"host", "a"},
                                   {"exit_code", -9},
                                   {"signal", "SIGKILL"},
                                   {"message", ""},
                                   {"stderr_tail", {"one", "two"}}}}};
  const Explanation said = explain_job(kJob, {.state = JobState::failed, .code = 1}, report);
  EXPECT_NE(said.text.find("rank 0 on a, ended by SIGKILL\n  two\n"), std::string::npos)
      << said.text;
}

TEST(JobWhy, ALostPartCanBeResumedAndASilentHostIsNamed) {
  const JobStatus status{.state = JobState::lost,
                         .nodes = {{.name = "a", .state = JobState::lost}, {.name = "b"}}};
  EXPECT_EQ(explain_job(kJob, status, nullptr).text,
            "job 3f0a9c1e (train) on gpus: lost\n"
            "  a: lost\n"
            "  b: does not answer\n"
            "lockstep resume 3f0a9c1e starts the lost parts again\n");
}

TEST(JobWhy, AReportSaysWhereTheRanksWere) {
  const nlohmann::json report = {
      {"schema", 2},
      {"run_id", "none"},
      {"entrypoint", "train.py"},
      {"node", "n1"},
      {"outcome", "failed"},
      {"reason", "hung for 31 s: rank 3 at data.py:41"},
      {"log_dir", "/logs/none_x"},
      {"others",
       {"ranks 0-2 were in all_reduce, train.py:88", "rank 3 was in \x1b[2J, data.py:41"}},
      {"attempts_total", 2},
      {"attempts", {{{"log_dir", "/logs/none_x/attempt_1"}}}},
      {"events",
       {{{"event", "hung"}, {"attempt", 1}, {"words", "an earlier one"}},
        {{"event", "hung"}, {"attempt", 2}, {"words", "hung for 31 s: rank 3 at data.py:41"}}}}};
  const auto said = explain_report(report.dump());
  ASSERT_TRUE(said);
  EXPECT_EQ(said->text,
            "job none (train.py) on n1: failed\n"
            "reason: hung for 31 s: rank 3 at data.py:41\n"
            "hang: hung for 31 s: rank 3 at data.py:41\n"
            "  evidence on n1: /logs/none_x/attempt_1/hang-*.txt\n"
            "  ranks 0-2 were in all_reduce, train.py:88\n"
            "  rank 3 was in \\x1b[2J, data.py:41\n"
            "logs: /logs/none_x\n");
  EXPECT_EQ(said->json["others"].size(), 2U);
  for (const char* text : {"", "[]", "{}", "{\"schema\":2}", "{\"schema\":2,\"outcome\":7}", "x"})
    EXPECT_FALSE(explain_report(text)) << text;
  EXPECT_EQ(explain_report(R"({"code":1,"done":0,"failed":1,"lost":0,"not begun":0,"rows":[]})")
                .error()
                .message,
            "this is the report of a sweep: the report of a failed row N is beside it, in "
            "FILE.rows/N.json");
  for (const char* text : {"{\"schema\":2,\"outcome\":\"\",\"events\":7}",
                           "{\"schema\":2,\"outcome\":\"x\",\"events\":[7],\"others\":[7,\"a\"]}",
                           "{\"schema\":2,\"outcome\":\"x\",\"events\":[{\"event\":\"hung\","
                           "\"words\":\"\\u001b\"}],\"attempts\":[7]}"}) {
    const auto odd = explain_report(text);
    EXPECT_TRUE(!odd || odd->text.find('\x1b') == std::string::npos) << text;
  }
}

TEST(JobWhy, AHangThatWasOverDidNotEndTheJob) {
  nlohmann::json report = {
      {"attempts_total", 1},
      {"events", {{{"event", "hung"}, {"attempt", 1}, {"words", "hung for 31 s"}}}}};
  EXPECT_EQ(hang_in(report).words, "hung for 31 s");
  report["events"].push_back({{"event", "hang_over"}, {"attempt", 1}});
  EXPECT_EQ(hang_in(report).words, "");
}

TEST(JobWhy, AReportOfAHostMayBeAnything) {
  for (const char* text : {"[]", "{}", "{\"root_cause\":7}", "{\"root_cause\":{\"rank\":\"x\"}}",
                           "{\"root_cause\":{\"message\":\"a\\u001b[31mb\"},\"reason\":[1]}"}) {
    const Explanation said =
        explain_job(kJob, {.state = JobState::failed, .code = 1}, codec::parse_json(text));
    EXPECT_EQ(said.text.find('\x1b'), std::string::npos) << text;
    EXPECT_TRUE(said.text.ends_with("shows the output\n")) << text;
  }
}

}  // namespace
}  // namespace lockstep::jobs
