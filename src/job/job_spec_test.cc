#include "job/job_spec.h"

#include <gtest/gtest.h>

namespace lockstep::job {
namespace {

JobSpec example() {
  return {.id = "3f0a9c1e",
          .name = "train",
          .node = 1,
          .nodes = 2,
          .run = {"--max-restarts=1", "--", "train.py", "", "a\nb", "-x"},
          .env = {"A=1", "TOKEN=secret"},
          .folder = "project/sub",
          .client = "me@laptop",
          .created_ms = 1'700'000'000'000,
          .queue = true,
          .after = {"aaaa1111"}};
}

nlohmann::json again(const nlohmann::ordered_json& json) {
  return codec::parse_json(codec::print_json(json));
}

TEST(JobSpec, ArrivesAsItWasSent) {
  const auto read = spec_from_json(again(to_json(example())));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(codec::print_json(to_json(*read)), codec::print_json(to_json(example())));
}

TEST(JobSpec, WhatMakesNoSenseIsRefused) {
  const auto refused = [](const char* member, const nlohmann::json& value) {
    nlohmann::json json = again(to_json(example()));
    json[member] = value;
    const auto read = spec_from_json(json);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(refused("id", "../../x"), "the job is invalid: 'id' is not the id of a job");
  EXPECT_EQ(refused("node", 2), "the job is invalid: 'node' is not one of the nodes");
  EXPECT_EQ(refused("run", "x"), "the job is invalid: 'run' is not a list");
  EXPECT_EQ(refused("env", {1}), "the job is invalid: 'env' is not a list of texts");
  EXPECT_EQ(refused("queue", 1), "the job is invalid: 'queue' is not true or false");
  EXPECT_FALSE(spec_from_json(nlohmann::json()));
}

TEST(JobSpec, ARecordHasNoEnvironment) {
  const JobRecord record{example(), {.stage = Stage::ended, .ended_ms = 5, .code = 7}};
  const auto json = to_json(record);
  EXPECT_EQ(codec::print_json(json).find("secret"), std::string::npos);
  const auto read = record_from_json(again(json));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->state.code, 7);
  EXPECT_EQ(read->state.stage, Stage::ended);
  EXPECT_TRUE(read->spec.env.empty());
  EXPECT_FALSE(record_from_json(nlohmann::json::array()));
}

TEST(JobSpec, ARecordOfASweepHasItsCounts) {
  JobRecord record{example(), {.stage = Stage::running}};
  record.spec.rows = 9;
  record.row_sets = {.done = {0, 1, 2}, .running = {3, 5}, .failed = {8}};
  nlohmann::json json = again(to_json(record));
  const auto read = record_from_json(json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->spec.rows, 9);
  EXPECT_EQ(read->row_sets, record.row_sets);
  json["rows"]["done"] = "10000";
  EXPECT_FALSE(record_from_json(json));
  json.erase("rows");
  EXPECT_FALSE(record_from_json(json));
}

TEST(JobSpec, IdsAreNamesOfFolders) {
  EXPECT_TRUE(is_job_id(new_job_id()));
  EXPECT_EQ(job_id_of("0a1b2c3d-0000-4000-8000-000000000000"), "0a1b2c3d");
  EXPECT_NE(new_job_id(), new_job_id());
  for (const char* bad : {"", "abc", "..aa", "a/bc", "ABCD", "-abc", "abc\n"})
    EXPECT_FALSE(is_job_id(bad)) << bad;
}

}  // namespace
}  // namespace lockstep::job
