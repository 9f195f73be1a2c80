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
