#include "jobs/job_ending.h"

#include <gtest/gtest.h>

namespace lockstep::jobs {
namespace {

std::optional<job::JobRecord> node(job::Stage stage, int code = 0) {
  job::JobRecord record;
  record.state.stage = stage;
  record.state.code = code;
  return record;
}

TEST(JobEnding, OnlyAJobThatHasEndedHasACode) {
  using job::Stage;
  EXPECT_EQ(ending_of({node(Stage::ended, 0)}).code, 0);
  EXPECT_EQ(ending_of({node(Stage::ended, 0), node(Stage::ended, 7)}).code, 7);
  for (const Stage stage : {Stage::prepared, Stage::queued, Stage::running}) {
    const JobEnding ending = ending_of({node(Stage::ended, 0), node(stage)});
    EXPECT_EQ(ending.code, std::nullopt) << job::stage_name(stage);
    EXPECT_EQ(ending.stage, stage);
  }
  EXPECT_EQ(ending_of({std::nullopt}).code, std::nullopt);
  EXPECT_EQ(ending_of({node(Stage::lost)}).code, std::nullopt);
}

TEST(JobEnding, WhatAHostSaysOfAJobIsOneRecordOrNone) {
  EXPECT_FALSE(parse_status(""));
  EXPECT_FALSE(parse_status("{}"));
  EXPECT_FALSE(parse_status("[{}]"));
  ASSERT_TRUE(parse_status("[]"));
  EXPECT_FALSE(parse_status("[]")->has_value());
}

}  // namespace
}  // namespace lockstep::jobs
