#include "page/page_state.h"

#include "codec/json.h"

#include <gtest/gtest.h>

namespace lockstep::page {
namespace {

TEST(PageState, IsOneObjectOfJson) {
  PageState state{.now_ms = 5, .run_id = "a\"b", .attempts_total = 2};
  state.attempts = {{.number = 2,
                     .start_ms = 3,
                     .why = "rank 1 failed\n",
                     .others = {"the other 7 ranks were in all_reduce, train.py:88"}}};
  state.rows = {.node = "n0", .state = "hung"};
  state.rows.rows = {{.rank = 7, .last_line = "<script>\x1b[2J"}};
  state.goodput.enter(status::Phase::start, {});
  state.goodput.look(status::Phase::training, 0.25,
                     status::Goodput::TimePoint{} + std::chrono::seconds(8));
  state.nodes = {.lines = {{.node = "n1", .state = "waiting", .ranks = "8-15", .count = 8}},
                 .more = 3,
                 .silent = {"node n2 has not told for 5 s"}};
  const auto json = codec::parse_json(state_json(state));
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["run_id"], "a\"b");
  EXPECT_TRUE(json["ended"].is_null());
  EXPECT_TRUE(json["attempts"][0]["end_ms"].is_null());
  EXPECT_EQ(json["attempts"][0]["others"][0], "the other 7 ranks were in all_reduce, train.py:88");
  EXPECT_EQ(json["view"]["state"], "hung");
  EXPECT_EQ(json["view"]["rows"][0]["rank"], 7);
  EXPECT_EQ(json["goodput"]["share"], 0.75);
  EXPECT_EQ(json["goodput"]["seconds"]["input"], 2);
  EXPECT_FALSE(json["goodput"]["seconds"].contains("redone")) << "no step lines are known";
  EXPECT_EQ(json["nodes"]["lines"][0]["ranks"], "8-15");
  EXPECT_EQ(json["nodes"]["silent"][0], "node n2 has not told for 5 s");
}

TEST(PageState, FramesKeepLinesApart) {
  EXPECT_EQ(event_frame("state", "{}"), "event: state\ndata: {}\n\n");
  // Output must not be able to begin a frame of its own.
  EXPECT_EQ(event_frame("x", "a\n\nevent: y\rdata: z"),
            "event: x\ndata: a\ndata: \ndata: event: y\ndata: data: z\n\n");
}

}  // namespace
}  // namespace lockstep::page
