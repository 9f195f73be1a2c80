// The JSON of a job: absent members, and the state of each host.
#include "cli/job_json.h"

#include "jobs/on_hosts/hosts_job.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

job::JobRecord record(job::Stage stage, int code, bool canceled = false) {
  job::JobRecord made;
  made.state.stage = stage;
  made.state.code = code;
  made.state.canceled = canceled;
  return made;
}

jobs::on_hosts::HostsJob job_on(std::vector<std::string> names) {
  jobs::KnownJob job{.id = "3f0a9c1e", .name = "big", .place = "gpus", .command = "train.py"};
  for (std::string& name : names) {
    job.nodes.emplace_back();
    job.nodes.back().name = std::move(name);
  }
  return jobs::on_hosts::HostsJob(std::move(job));
}

jobs::JobStatus status(const std::vector<std::optional<job::JobRecord>>& nodes) {
  return jobs::status_of({"a", "b"}, nodes);
}

TEST(JobJson, TheJobAndEachHost) {
  EXPECT_EQ(
      codec::print_json(job_json(job_on({"a", "b"}), status({record(job::Stage::ended, 0),
                                                             record(job::Stage::ended, 7)}))),
      R"({"id":"3f0a9c1e","name":"big","on":"gpus","state":"failed","code":7,"canceled":false,)"
      R"("hosts":[{"name":"a","state":"succeeded","code":0,"canceled":false},)"
      R"({"name":"b","state":"failed","code":7,"canceled":false}]})");
}

TEST(JobJson, ACodeIsThereOnlyWhereItIsKnown) {
  job::JobRecord lost = record(job::Stage::lost, 0);
  lost.state.problem = "no room";
  EXPECT_EQ(codec::print_json(job_json(job_on({"a", "b"}), status({lost, std::nullopt}))),
            R"({"id":"3f0a9c1e","name":"big","on":"gpus","state":"lost","canceled":false,)"
            R"("why":"no room","hosts":[)"
            R"({"name":"a","state":"lost","canceled":false,"error":"no room"},)"
            R"({"name":"b","state":"unknown"}]})");
}

}  // namespace
}  // namespace lockstep::cli
