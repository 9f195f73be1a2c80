// What is recorded for a successor.
#include "rendezvous/hub/job_record.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::hub {
namespace {

CoordinatorSettings fenced() {
  CoordinatorSettings settings;
  settings.fenced = true;
  settings.first_round = 7;
  settings.restarts = 2;
  return settings;
}

TEST(JobRecord, NothingIsRecordedWithoutFencing) {
  JobRecord job((CoordinatorSettings()));
  job.write_down(nullptr, nullptr);
  EXPECT_FALSE(job.take_request());
}

TEST(JobRecord, TheHostsOwnEndIsRecordedWithTheEndsOfNodesThatLeft) {
  JobRecord job(fenced());
  Roster roster;
  auto& host = roster.add(1, {}, "a", Ms(0));
  roster.set_rank(host, 0);
  CurrentRound round(8, 3);
  round.finished_node_left(2);
  job.write_down(&round, &host);
  auto request = job.take_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->round, 8);
  EXPECT_EQ(request->restarts, 2);
  EXPECT_EQ(request->lead, 0);
  EXPECT_EQ(request->finished, std::vector<int>{2});
  EXPECT_EQ(request->end, JobRecord::End::none);
  EXPECT_FALSE(job.take_request());
  roster.set_stage(host, Roster::Stage::finished);
  job.write_down(&round, &host);
  EXPECT_EQ(job.take_request()->finished, (std::vector<int>{2, 0}));
  job.write_down(&round, nullptr);
  EXPECT_EQ(job.take_request()->lead, -1);
}

TEST(JobRecord, AnEndBeforeTheFirstRoundNamesTheRoundOfThePredecessor) {
  JobRecord job(fenced());
  EXPECT_FALSE(job.over());
  job.end(JobRecord::End::failed, "rank 1 on b failed");
  EXPECT_TRUE(job.over());
  job.write_down(nullptr, nullptr);
  const auto request = job.take_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->round, 6);
  EXPECT_EQ(request->end, JobRecord::End::failed);
  EXPECT_EQ(request->why, "rank 1 on b failed");
}

TEST(JobRecord, ALaterRequestReplacesAnEarlierOne) {
  JobRecord job(fenced());
  job.write_down(nullptr, nullptr);
  job.ask(9, 1);
  const auto request = job.take_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->round, 9);
  EXPECT_EQ(request->lead, 1);
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
