#include "cloud/rented_job.h"

#include <gtest/gtest.h>

#include <utility>

namespace lockstep::cloud {
namespace {

RentedJob some_job() {
  return {.rental = "abc",
          .cluster = "lab",
          .words = {"--on-demand=L4:1", "--", "train.py", "--name=a \"b\"\n"},
          .folder = "/home/me/project",
          .run_id = "r-1",
          .stage = RentedJob::Stage::lost,
          .losses = 2,
          .brought = true,
          .job = "abcd1234",
          .succeeded = true,
          .code = 143,
          .note = "3.20 USD",
          .began_ms = 1'800'000'000'000,
          .host = "me@desk",
          .root = "/home/me/project",
          .tree = "project",
          .back = {"out", "logs/a b"},
          .client = "lk01",
          .follower = 4711};
}

TEST(RentedJob, ComesBackAsItWas) {
  const RentedJob job = some_job();
  const auto read = parse_rented_job(rented_job_json(job));
  ASSERT_TRUE(read);
  EXPECT_EQ(rented_job_json(*read), rented_job_json(job));
  EXPECT_EQ(read->words, job.words);
  EXPECT_EQ(read->stage, job.stage);
  EXPECT_EQ(read->losses, 2);
  EXPECT_EQ(read->follower, 4711);
  EXPECT_TRUE(read->brought);
  EXPECT_TRUE(read->succeeded);
  EXPECT_EQ(read->back, job.back);
  EXPECT_EQ(read->host, "me@desk");
  EXPECT_EQ(read->client, "lk01");
}

TEST(RentedJob, AnUnseenEndOfANotedSuccessIsNoFailure) {
  RentedJob job{.rental = "a", .cluster = "a", .words = {}, .folder = "/"};
  const auto ended = [](RentedJob of) {
    end_unseen(of, "not known");
    EXPECT_EQ(of.stage, RentedJob::Stage::ending);
    return std::pair(of.code, of.note);
  };
  EXPECT_EQ(ended(job), std::pair(1, std::string("not known")));
  job.succeeded = true;
  EXPECT_EQ(ended(job), std::pair(0, std::string("the job had succeeded")));
  job.back = {"out"};
  EXPECT_EQ(ended(job),
            std::pair(1, std::string("the job had succeeded, but its outputs are not here")));
  job.stage = RentedJob::Stage::ending;
  job.note = "outputs in out";
  EXPECT_EQ(ended(job), std::pair(0, job.note)) << "the course has noted the end";
}

TEST(RentedJob, WhatMakesNoSenseIsRefused) {
  for (const char* text : {"", "{}", "[]", "{\"rental\": \"a\", \"stage\": \"working\"}",
                           "{\"rental\": \"a\", \"stage\": \"walking\", \"folder\": \"/\"}",
                           "{\"rental\": \"a\", \"stage\": \"working\", \"folder\": \"here\"}"})
    EXPECT_FALSE(parse_rented_job(text)) << text;
  const auto odd = parse_rented_job(
      R"({"rental": "a", "stage": "ended", "folder": "/", "losses": -4, "code": 4000, "words": [1, "x"]})");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->losses, 0);
  EXPECT_EQ(odd->code, 255);
  EXPECT_EQ(odd->words, std::vector<std::string>{"x"});
}

}  // namespace
}  // namespace lockstep::cloud
