#include "jobs/on_hosts/job_plan.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::jobs::on_hosts {
namespace {

using Texts = std::vector<std::string>;

hosts::HostPlace place(const std::string& name) {
  hosts::HostPlace place;
  place.name = name;
  return place;
}

jobs::KnownJob started_with(const Texts& env, const Texts& secrets,
                            const Texts& run = {"train.py"}) {
  JobRequest request;
  request.hosts = {place("a"), place("b")};
  request.spec.id = "aaaa1111";
  request.spec.run = run;
  request.spec.env = env;
  request.words = {{"--node-rank=0"}, {"--node-rank=1"}};
  request.secrets = secrets;
  jobs::KnownJob job;
  job.id = request.spec.id;
  job.nodes = request.hosts;
  job.plan = plan_text(request, {.ahead = {}, .endpoint = "10.0.0.1:7"});
  return job;
}

TEST(JobPlan, AResumedNodeHasItsWordsAndItsVariablesAgain) {
  const jobs::KnownJob job = started_with({"PATH=/venv/bin", "WORD=a b"}, {});
  const auto again = resumed_request(job, {.lost = {1}, .unknown = {}}, {"WORD=new"});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->spec.env, (Texts{"PATH=/venv/bin", "WORD=new"}));
  EXPECT_EQ(again->words, (std::vector<Texts>{{"--node-rank=1", "--rdzv-endpoint=10.0.0.1:7"}}));
  EXPECT_EQ(again->hosts.size(), 1U);
  EXPECT_TRUE(again->spec.resumes);
}

// A silent host may run its part, or have ended it: a second start would do the work twice.
TEST(JobPlan, OnlyAHostThatAnswersCanHaveLostItsPart) {
  const auto told = [](job::Stage stage) {
    return PartAnswer{.answered = true,
                      .record = job::JobRecord{.spec = {}, .state = {.stage = stage}}};
  };
  const PartAnswer unknown_there{.answered = true};
  const LostParts parts =
      lost_parts({told(job::Stage::running), told(job::Stage::lost), PartAnswer(), unknown_there,
                  told(job::Stage::ended), told(job::Stage::queued)});
  EXPECT_EQ(parts.lost, (std::vector<int>{1, 3}));
  EXPECT_EQ(parts.unknown, std::vector<int>{2});
  EXPECT_TRUE(parts.runs);
  for (const PartAnswer& other : {PartAnswer(), unknown_there, told(job::Stage::prepared),
                                  told(job::Stage::queued), told(job::Stage::ended)})
    EXPECT_FALSE(lost_parts({other, told(job::Stage::lost)}).runs);
}

// A job of three nodes, any of which may host the rendezvous.
JobRequest three_places() {
  JobRequest request;
  request.hosts = {place("a"), place("b"), place("c")};
  request.spec.id = "aaaa1111";
  request.spec.run = {"--", "train.py", "--rdzv-conf=x=1"};
  request.words = {{"--node-rank=0"}, {"--node-rank=1"}, {"--node-rank=2"}};
  return request;
}

jobs::KnownJob known(const JobRequest& request, const std::string& endpoint) {
  jobs::KnownJob job;
  job.id = request.spec.id;
  job.nodes = request.hosts;
  job.plan = plan_text(request, {.ahead = {}, .endpoint = endpoint});
  return job;
}

constexpr const char* kPlaces = "10.0.0.1:7,10.0.0.2:7";

// Returns all words of the first resumed node, as its host sees them.
Texts words_of_first(const jobs::KnownJob& job, const LostParts& parts) {
  const auto again = resumed_request(job, parts, {});
  EXPECT_TRUE(again) << again.error().message;
  if (!again) return {};
  Texts words = again->words.front();
  words.insert(words.end(), again->spec.run.begin(), again->spec.run.end());
  return words;
}

// Another node hosts the rendezvous of a job that runs without node 0.
TEST(JobPlan, NodeZeroComesBackAsAGuest) {
  JobRequest request = three_places();
  const std::string endpoint = std::string("--rdzv-endpoint=") + kPlaces;
  const LostParts parts{.lost = {0, 2}, .unknown = {}, .runs = true};
  EXPECT_EQ(words_of_first(known(request, kPlaces), parts),
            (Texts{"--node-rank=0", endpoint, "--rdzv-conf=is_host=0", "--", "train.py",
                   "--rdzv-conf=x=1"}));
  // With one place to meet, the other nodes wait there.
  EXPECT_EQ(resumed_request(known(request, "10.0.0.1:7"), parts, {})->spec.run, request.spec.run);
  EXPECT_EQ(resumed_request(known(request, kPlaces), {.lost = {1}, .unknown = {}, .runs = true}, {})
                ->spec.run,
            request.spec.run);
}

TEST(JobPlan, AGuestKeepsTheUsersTimes) {
  JobRequest request = three_places();
  const LostParts parts{.lost = {0}, .unknown = {}, .runs = true};
  request.spec.env = {"PET_RDZV_CONF=join_timeout=8"};
  const auto by_variable = resumed_request(known(request, kPlaces), parts, {});
  EXPECT_EQ(by_variable->spec.env, Texts{"PET_RDZV_CONF=join_timeout=8,is_host=0"});
  EXPECT_EQ(by_variable->spec.run, request.spec.run);
  request.spec.run.insert(request.spec.run.begin(), "--rdzv-conf=join_timeout=9");
  EXPECT_EQ(resumed_request(known(request, kPlaces), parts, {})->spec.run.front(),
            "--rdzv-conf=join_timeout=9,is_host=0");
}

// The lost node may be the first of the user's list, whatever its number is.
TEST(JobPlan, AUsersListMakesEveryLostNodeAGuest) {
  JobRequest request = three_places();
  const LostParts parts{.lost = {1}, .unknown = {}, .runs = true};
  request.spec.run.insert(request.spec.run.begin(), "--rdzv-endpoint=b:1,a:1,c:1");
  EXPECT_EQ(resumed_request(known(request, ""), parts, {})->spec.run.front(),
            "--rdzv-conf=is_host=0");
  // A list of servers, of which no node is the host.
  request.spec.run.insert(request.spec.run.begin(), "--rdzv-backend=etcd3");
  EXPECT_EQ(resumed_request(known(request, ""), parts, {})->spec.run, request.spec.run);
  request.spec.run = {"--", "train.py", "--rdzv-endpoint=x,y"};
  EXPECT_EQ(resumed_request(known(request, ""), parts, {})->spec.run, request.spec.run);
}

// Queued parts have no rendezvous, and wait for node 0 to open it.
TEST(JobPlan, NodeZeroHostsIfNoOtherPartRuns) {
  const JobRequest request = three_places();
  EXPECT_EQ(
      resumed_request(known(request, kPlaces), {.lost = {0}, .unknown = {}, .runs = false}, {})
          ->spec.run,
      request.spec.run);
}

// As a guest node 0 may wait in vain, and as a host it may train beside the silent ones.
TEST(JobPlan, NodeZeroIsNotStartedAgainIfOnlySilentHostsKnowWhoHosts) {
  const JobRequest request = three_places();
  const auto refused =
      resumed_request(known(request, kPlaces), {.lost = {0, 2}, .unknown = {1}}, {});
  EXPECT_EQ(code_of(refused), Errc::unavailable);
  EXPECT_NE(refused.error().message.find("no answer from b,"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(resumed_request(known(request, kPlaces), {.lost = {2}, .unknown = {1}}, {}));
  EXPECT_TRUE(resumed_request(known(request, "10.0.0.1:7"), {.lost = {0}, .unknown = {1}}, {}));
}

TEST(JobPlan, RowsBeginAgainOnAllHosts) {
  const jobs::KnownJob job =
      started_with({}, {}, {"--sweep-only=0-9", "--sweep=x=0-99", "--", "t", "--sweep-only=mine"});
  const auto again = rows_request(job, {3, 4, 5, 9}, {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->spec.run,
            (Texts{"--sweep-only=3-5,9", "--sweep=x=0-99", "--", "t", "--sweep-only=mine"}));
  EXPECT_EQ(again->nodes, (std::vector<int>{0, 1}));
  EXPECT_EQ(again->words[1], (Texts{"--node-rank=1", "--rdzv-endpoint=10.0.0.1:7"}));
  EXPECT_TRUE(again->spec.resumes);
}

TEST(JobPlan, SecretsAreNotKeptAndAreNamedWhereTheyAreMissing) {
  const jobs::KnownJob job =
      started_with({"WORD=kept", "KEY=s3cret", "TOKEN=hidden"}, {"KEY", "TOKEN"});
  EXPECT_EQ(job.plan.find("s3cret"), std::string::npos);
  EXPECT_EQ(job.plan.find("hidden"), std::string::npos);
  const auto refused = resumed_request(job, {.lost = {0}, .unknown = {}}, {"KEY=s3cret"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(code_of(refused), Errc::invalid_input);
  EXPECT_NE(refused.error().hint.find("--secret TOKEN"), std::string::npos) << refused.error().hint;
  EXPECT_EQ(refused.error().hint.find("--secret KEY"), std::string::npos) << refused.error().hint;
  const auto again =
      resumed_request(job, {.lost = {0}, .unknown = {}}, {"KEY=s3cret", "TOKEN=hidden"});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->spec.env, (Texts{"WORD=kept", "KEY=s3cret", "TOKEN=hidden"}));
}

TEST(JobPlan, ALostNodeBeginsAgainWithItsOwnWordsAndVariables) {
  JobRequest request;
  request.hosts = {{.name = "gpus-0", .target = {.host = "a"}},
                   {.name = "gpus-1", .target = {.host = "b"}}};
  request.spec = {.id = "aaaa1111",
                  .name = "train",
                  .run = {"--", "train.py"},
                  .env = {"LOCKSTEP_RDZV_TOKEN=t", "A=1", "B=2", "SECRET=s"},
                  .folder = "f",
                  .client = "me"};
  request.words = {{"--node-rank=0"}, {"--node-rank=1"}};
  request.secrets = {"SECRET"};
  jobs::KnownJob job;
  job.id = "aaaa1111";
  job.nodes = request.hosts;
  job.plan = plan_text(request, {.ahead = {}, .endpoint = "10.0.0.1:29400"});
  EXPECT_EQ(job.plan.find("SECRET="), std::string::npos);
  const auto refused = resumed_request(job, {.lost = {1}, .unknown = {}}, {"A=1"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().hint, "give them again: --secret SECRET");
  const auto again =
      resumed_request(job, {.lost = {1}, .unknown = {}}, {"B=3", "SECRET=once more"});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->spec.resumes);
  EXPECT_EQ(again->spec.nodes, 2);
  EXPECT_EQ(again->nodes, std::vector<int>{1});
  EXPECT_EQ(again->hosts.front().name, "gpus-1");
  EXPECT_EQ(again->spec.env,
            (std::vector<std::string>{"LOCKSTEP_RDZV_TOKEN=t", "A=1", "B=3", "SECRET=once more"}));
  EXPECT_EQ(again->words.front(),
            (std::vector<std::string>{"--node-rank=1", "--rdzv-endpoint=10.0.0.1:29400"}));
  job.plan = "{}";
  EXPECT_FALSE(resumed_request(job, {.lost = {1}, .unknown = {}}, {}));
}

}  // namespace
}  // namespace lockstep::jobs::on_hosts
