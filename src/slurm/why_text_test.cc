#include "slurm/why_text.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <time.h>

namespace lockstep::slurm {
namespace {

constexpr std::int64_t kNow = 1795374000;

JobReport waiting(const std::string& id, const std::string& reason) {
  JobReport job;
  job.id = id;
  job.job = whole_job(id);
  job.name = "train";
  job.user = "ann";
  job.state = parse_job_state("PENDING");
  job.reason = reason;
  job.partition = "gpu";
  job.node_count = 2;
  job.time_limit = 600;
  return job;
}

std::string text_of(const std::vector<JobReport>& jobs) {
  setenv("TZ", "UTC", 1);
  tzset();
  return why_text(explain_all(jobs, {}), kNow);
}

TEST(WhyText, AJobThatWaits) {
  JobReport job = waiting("7", "Resources");
  job.start = kNow + 720;
  job.held_nodes = "n[2-3]";
  EXPECT_EQ(text_of({job}),
            "job 7 train of ann: PENDING (Resources)\n"
            "  why     the job is next, but other jobs use the requested resources\n"
            "  asks    2 nodes, time 00:10:00, partition gpu\n"
            "  start   expected 2026-11-22 19:12:00, in 12 min on n[2-3]\n"
            "  do      a shorter --time or fewer nodes may fit into a gap sooner\n");
}

TEST(WhyText, TheExpectedStartIsHonest) {
  JobReport job = waiting("7", "Resources");
  EXPECT_NE(text_of({job}).find("Slurm has not planned it yet"), std::string::npos);
  job.start = kNow + std::int64_t{365} * 86400;
  EXPECT_NE(text_of({job}).find("cannot tell: an earlier job has no time limit"),
            std::string::npos);
  job.start = kNow - 5;
  EXPECT_NE(text_of({job}).find("expected any moment"), std::string::npos);
  EXPECT_NE(text_of({waiting("7", "JobHeldUser")}).find("not before the job is released"),
            std::string::npos);
  EXPECT_NE(text_of({waiting("7", "PartitionNodeLimit")}).find("never, unless the job is changed"),
            std::string::npos);
}

TEST(WhyText, TasksThatWaitForTheSameAreOne) {
  const auto all = explain_all(
      {waiting("7_1", "Priority"), waiting("7_2", "Priority"), waiting("7_3", "Resources")}, {});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].ids, (std::vector<std::string>{"7_1", "7_2"}));
}

TEST(WhyText, ForPrograms) {
  JobReport job = waiting("7", "Resources");
  job.start = kNow;
  job.name = "\xff\n";
  const auto json = why_json(explain_all({job}, {}));
  const auto& first = json["jobs"][0];
  EXPECT_EQ(first["outlook"], "starts-by-itself");
  EXPECT_EQ(first["expected_start"], kNow);
  EXPECT_TRUE(first["started"].is_null());
  EXPECT_EQ(first["name"], "\\xff\\x0a");
  EXPECT_NO_THROW(codec::print_json(json));
}

// Names, comments and reasons come from other users.
TEST(WhyText, NoLineMovesTheCursor) {
  Explained job;
  job.job.id = job.job.job = "7";
  job.job.name = job.job.reason = "\x1b[2J";
  job.said.why = job.job.user = "a\x1b]0;b\x07";
  job.said.advice = {"c\nd"};
  job.facts = {{"note", "e\x1b[2Jf"}};
  const std::string text = why_text({job}, 0);
  EXPECT_EQ(text.find_first_of("\x1b\x07"), std::string::npos) << text;
  EXPECT_NE(text.find("e\\x1b[2Jf"), std::string::npos) << text;
  EXPECT_NE(text.find("c\\x0ad"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep::slurm
