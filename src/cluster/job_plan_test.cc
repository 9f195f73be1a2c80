#include "cluster/job_plan.h"

#include <gtest/gtest.h>

namespace lockstep::cluster {
namespace {

using Texts = std::vector<std::string>;

HostPlace place(const std::string& name) {
  HostPlace place;
  place.name = name;
  return place;
}

KnownJob started_with(const Texts& env, const Texts& secrets) {
  JobRequest request;
  request.hosts = {place("a"), place("b")};
  request.spec.id = "aaaa1111";
  request.spec.run = {"train.py"};
  request.spec.env = env;
  request.words = {{"--node-rank=0"}, {"--node-rank=1"}};
  request.secrets = secrets;
  KnownJob job;
  job.id = request.spec.id;
  job.nodes = request.hosts;
  job.plan = plan_text(request, {.ahead = {}, .endpoint = "10.0.0.1:7"});
  return job;
}

TEST(JobPlan, AResumedNodeHasItsWordsAndItsVariablesAgain) {
  const KnownJob job = started_with({"PATH=/venv/bin", "WORD=a b"}, {});
  const auto again = resumed_request(job, {1}, {"WORD=new"});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->spec.env, (Texts{"PATH=/venv/bin", "WORD=new"}));
  EXPECT_EQ(again->words, (std::vector<Texts>{{"--node-rank=1", "--rdzv-endpoint=10.0.0.1:7"}}));
  EXPECT_EQ(again->hosts.size(), 1U);
  EXPECT_TRUE(again->spec.resumes);
}

TEST(JobPlan, SecretsAreNotKeptAndAreNamedWhereTheyAreMissing) {
  const KnownJob job = started_with({"WORD=kept", "KEY=s3cret", "TOKEN=hidden"}, {"KEY", "TOKEN"});
  EXPECT_EQ(job.plan.find("s3cret"), std::string::npos);
  EXPECT_EQ(job.plan.find("hidden"), std::string::npos);
  const auto refused = resumed_request(job, {0}, {"KEY=s3cret"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_input);
  EXPECT_NE(refused.error().hint.find("--secret TOKEN"), std::string::npos) << refused.error().hint;
  EXPECT_EQ(refused.error().hint.find("--secret KEY"), std::string::npos) << refused.error().hint;
  const auto again = resumed_request(job, {0}, {"KEY=s3cret", "TOKEN=hidden"});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->spec.env, (Texts{"WORD=kept", "KEY=s3cret", "TOKEN=hidden"}));
}

}  // namespace
}  // namespace lockstep::cluster
