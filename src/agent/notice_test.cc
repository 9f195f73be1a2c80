#include "agent/notice.h"

#include <gtest/gtest.h>

namespace lockstep::agent {
namespace {

using status::JobEventKind;

status::JobEvent of(JobEventKind kind, std::int64_t attempt = 1) {
  return {.time_ms = 5, .kind = kind, .number = 3, .attempt = attempt, .node = "gpu-1"};
}

TEST(Notices, AreFew) {
  NoticeChoice choice;
  EXPECT_FALSE(choice.what(of(JobEventKind::started)));
  EXPECT_FALSE(choice.what(of(JobEventKind::round_formed)));
  EXPECT_EQ(choice.what(of(JobEventKind::ranks_started)), "start");
  EXPECT_FALSE(choice.what(of(JobEventKind::training)));
  EXPECT_EQ(choice.what(of(JobEventKind::hung)), "hang");
  EXPECT_EQ(choice.what(of(JobEventKind::failed)), "failure");
  EXPECT_FALSE(choice.what(of(JobEventKind::failed)));
  EXPECT_EQ(choice.what(of(JobEventKind::restarting, 2)), "restart");
  EXPECT_FALSE(choice.what(of(JobEventKind::ranks_started, 2)));
  EXPECT_EQ(choice.what(of(JobEventKind::failed, 2)), "failure");
  EXPECT_EQ(choice.what(of(JobEventKind::ended, 2)), "end");
}

TEST(Notices, HaveTextAndJson) {
  Notice notice{.what = "failure", .job = "train.py", .event = of(JobEventKind::failed, 2)};
  notice.event.words = "rank 3 failed: <b> & more";
  EXPECT_EQ(notice_text(notice),
            "train.py: failure on gpu-1 (attempt 2): rank 3 failed: <b> & more");
  EXPECT_EQ(slack_json(notice),
            R"({"text":"train.py: failure on gpu-1 (attempt 2): rank 3 failed: )"
            R"(&lt;b&gt; &amp; more"})");
  const std::string json = notice_json(notice);
  EXPECT_TRUE(json.starts_with(R"({"notice":"failure","job":"train.py","text":"train.py: fail)"))
      << json;
  EXPECT_NE(json.find(R"("event":"failed","time_ms":5,)"), std::string::npos) << json;
}

}  // namespace
}  // namespace lockstep::agent
