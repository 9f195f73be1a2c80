// Which clients vote in the rendezvous of their jobs.
#include "jobs/on_hosts/client_vote.h"

#include <gtest/gtest.h>

namespace lockstep::jobs::on_hosts {
namespace {

JobRequest request() {
  JobRequest request;
  request.client_votes = true;
  request.spec.env = {"A=1", "LOCKSTEP_RDZV_TOKEN=secret"};
  return request;
}
const StartedJob kStarted{.ahead = {}, .endpoint = "10.0.0.1:29400,[fd00::2]:29500"};

TEST(VotePlan, NamesBothHubs) {
  const auto plan = vote_plan(request(), kStarted, "job", {"10.0.0.9", "127.0.0.1"});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->hubs,
            (std::vector<codec::RdzvEndpoint>{{"10.0.0.1", 29400}, {"fd00::2", 29500}}));
  EXPECT_EQ(plan->run_id, "job");
  EXPECT_EQ(plan->token, "secret");
}

TEST(VotePlan, AClientOnTheMachineOfAHostHasNone) {
  EXPECT_FALSE(vote_plan(request(), kStarted, "job", {"fd00::2"}));
  EXPECT_FALSE(vote_plan(request(), kStarted, "job", {"10.0.0.1"}));
}

TEST(VotePlan, NeedsTwoPlacesAndTheTokenAndTheWish) {
  EXPECT_FALSE(vote_plan(request(), {.ahead = {}, .endpoint = "10.0.0.1:29400"}, "job", {}));
  JobRequest no_token = request();
  no_token.spec.env.pop_back();
  EXPECT_FALSE(vote_plan(no_token, kStarted, "job", {}));
  JobRequest no_wish = request();
  no_wish.client_votes = false;
  EXPECT_FALSE(vote_plan(no_wish, kStarted, "job", {}));
}

}  // namespace
}  // namespace lockstep::jobs::on_hosts
