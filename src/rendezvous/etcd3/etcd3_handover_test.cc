#include "rendezvous/etcd3/etcd3_handover.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::etcd3 {
namespace {

using End = hub::PermitRequest::End;

TEST(Etcd3Handover, TheNextLeaderBeginsWhereTheLastOneWas) {
  const Etcd3Facts facts = facts_of({.round = 4, .restarts = 2, .lead = 1, .finished = {0, 3}});
  EXPECT_EQ(facts, Etcd3Facts({4, 2, false, "", false, 1, {0, 3}}));
  hub::CoordinatorSettings settings;
  begin_after(facts, settings);
  EXPECT_EQ(settings.first_round, 5);
  EXPECT_EQ(settings.restarts, 2);
  EXPECT_TRUE(settings.takeover);
  EXPECT_EQ(settings.last_lead, 1);
  EXPECT_EQ(settings.last_finished, (std::vector<int>{0, 3}));
}

TEST(Etcd3Handover, TheFirstLeaderTakesOverFromNobody) {
  hub::CoordinatorSettings settings;
  begin_after({}, settings);
  EXPECT_EQ(settings.first_round, 0);
  EXPECT_FALSE(settings.takeover);
}

TEST(Etcd3Handover, TheEndOfTheJobSaysHow) {
  const auto ended = [](End end, const std::string& why) {
    hub::PermitRequest request;
    request.end = end;
    request.why = why;
    return facts_of(request);
  };
  const Etcd3Facts good = ended(End::succeeded, "all are done");
  EXPECT_TRUE(good.closed);
  EXPECT_TRUE(good.good);
  EXPECT_EQ(good.why, "the job is done");
  const Etcd3Facts bad = ended(End::failed, "rank 3 failed");
  EXPECT_TRUE(bad.closed);
  EXPECT_FALSE(bad.good);
  EXPECT_EQ(bad.why, "the job has failed: rank 3 failed");
  EXPECT_EQ(ended(End::failed, {}).why, "the job has failed");
}

}  // namespace
}  // namespace lockstep::rendezvous::etcd3
