#include "job/queue.h"

#include <gtest/gtest.h>

namespace lockstep::job {
namespace {

using Ids = std::vector<std::string>;

JobRecord record(const std::string& id, std::int64_t created_ms, Stage stage) {
  JobRecord made;
  made.spec.id = id;
  made.spec.created_ms = created_ms;
  made.spec.queue = true;
  made.state.stage = stage;
  return made;
}

TEST(JobQueue, TheOlderGoesFirst) {
  const JobRecord older = record("bbbb", 1, Stage::running);
  const JobRecord younger = record("aaaa", 2, Stage::prepared);
  EXPECT_EQ(jobs_ahead(younger.spec, {older, younger}), Ids{"bbbb"});
  EXPECT_EQ(jobs_ahead(older.spec, {older, younger}), Ids{});
}

TEST(JobQueue, WhatHasEndedIsNotWaitedFor) {
  const JobRecord job = record("aaaa", 9, Stage::prepared);
  EXPECT_EQ(jobs_ahead(job.spec, {record("cccc", 1, Stage::ended), record("dddd", 1, Stage::lost)}),
            Ids{});
}

TEST(JobQueue, AnEarlierJobThatWasStartedWithoutTheQueueIsWaitedFor) {
  JobRecord free = record("bbbb", 1, Stage::running);
  free.spec.queue = false;
  const JobRecord job = record("aaaa", 9, Stage::prepared);
  EXPECT_EQ(jobs_ahead(job.spec, {free}), Ids{"bbbb"});
  free.spec.created_ms = 10;
  EXPECT_EQ(jobs_ahead(job.spec, {free}), Ids{}) << "a later one does not push back";
}

// A host let the younger job go before the older job reached that host.
TEST(JobQueue, AJobThatWasLetGoIsAheadOfAnOlderOneOnAllHosts) {
  JobRecord older = record("oooo", 1, Stage::prepared);
  const JobRecord younger = record("yyyy", 2, Stage::queued);
  older.spec.after = jobs_let_go(older.spec, {younger});
  EXPECT_EQ(older.spec.after, Ids{"yyyy"});
  EXPECT_EQ(jobs_ahead(older.spec, {younger}), Ids{"yyyy"});
  EXPECT_EQ(jobs_ahead(younger.spec, {older}), Ids{}) << "both would wait for ever";
}

}  // namespace
}  // namespace lockstep::job
