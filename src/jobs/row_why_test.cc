#include "jobs/row_why.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <utility>

namespace lockstep::jobs {
namespace {

const KnownJob kJob{.id = "abcd", .name = "train", .place = "gpus", .command = "train.py"};

nlohmann::ordered_json row(std::size_t number, const char* state) {
  return {{"row", number}, {"values", {{"lr", "1e-3"}, {"seed", "2"}}}, {"state", state}};
}

nlohmann::ordered_json failed_row() {
  auto json = row(12, "failed");
  json.update({{"host", "gpus-1"},
               {"tries", 2},
               {"seconds", 31.25},
               {"code", 7},
               {"last_line", "hung\x1b"},
               {"step", 40},
               {"step_line", "step 40: loss 0.5"}});
  return json;
}

nlohmann::json hung_on(const char* node) {
  return {{"node", node},
          {"attempts_total", 1},
          {"attempts", {{{"log_dir", "/logs"}}}},
          {"events", {{{"event", "hung"}, {"attempt", 1}, {"words", "hung for 31 s: rank 3"}}}}};
}

TEST(RowWhy, AFailedRowIsExplainedByItsReports) {
  nlohmann::json second = hung_on("n2");
  second["root_cause"] = {{"rank", 3}, {"host", "n2"}, {"exit_code", 7}, {"message", "no luck"}};
  const auto said = explain_row(kJob, failed_row(), {hung_on("n1"), second});
  EXPECT_EQ(said.text,
            "row 12 of job abcd (train) on gpus: failed (7)\n"
            "  lr=1e-3 seed=2\n"
            "  on gpus-1, try 2, 31.2 s\n"
            "  step 40: step 40: loss 0.5\n"
            "reason: hung\\x1b\n"
            "root cause: rank 3 on n2, exit code 7\n"
            "  no luck\n"
            "hang: hung for 31 s: rank 3\n"
            "  evidence on n2: /logs/hang-*.txt\n"
            "  evidence on n1: /logs/hang-*.txt\n"
            "lockstep logs 'abcd[12]' shows the output\n");
  EXPECT_EQ(said.json["id"], "abcd");
  EXPECT_EQ(said.json["row"], 12);
  EXPECT_EQ(said.json["values"]["lr"], "1e-3");
  EXPECT_EQ(said.json["root_cause"]["message"], "no luck");
  EXPECT_EQ(said.json["hang"]["folder"], "/logs");
}

TEST(RowWhy, ARowThatHasNotBegunHasNoOutput) {
  EXPECT_EQ(explain_row(kJob, row(3, "queued"), {}).text,
            "row 3 of job abcd (train) on gpus: queued\n"
            "  lr=1e-3 seed=2\n"
            "lockstep why abcd shows the other rows\n");
}

// A sweep of which the test tells the rows.
class Sweep : public Job {
 public:
  explicit Sweep(nlohmann::ordered_json json) : Job(kJob), json_(std::move(json)) {}
  Result<Explanation> why() override { return Explanation{.text = "all\n", .json = json_}; }
  std::vector<nlohmann::json> row_reports(std::size_t, const std::string& host) override {
    asked.push_back("reports of " + host);
    return {};
  }
  Result<std::vector<looks::Answer>> row_looks(std::size_t, const std::string& host) override {
    asked.push_back("ranks on " + host);
    if (silent) return fail(Errc::unavailable, "no answer");
    return std::vector<looks::Answer>{{.node = host, .command = "train.py", .state = "fine"}};
  }
  Result<JobStatus> status() override { return JobStatus(); }
  Result<Followed> follow(const FollowOptions&) override { return Followed(); }
  Result<JobStatus> cancel() override { return JobStatus(); }
  Result<Resumed> resume(const std::vector<std::string>&) override { return Resumed(); }

  std::vector<std::string> asked;
  bool silent = false;

 private:
  nlohmann::ordered_json json_;
};

TEST(RowWhy, OnlyWhatTheStateOfTheRowNeedsIsAsked) {
  auto runs = row(4, "running");
  runs["host"] = "gpus-0";
  auto rows = nlohmann::ordered_json::array({row(3, "queued"), runs, failed_row()});
  Sweep sweep(nlohmann::ordered_json{{"rows", rows}});
  ASSERT_TRUE(why_row(sweep, 3));
  EXPECT_TRUE(sweep.asked.empty());
  ASSERT_TRUE(why_row(sweep, 12));
  EXPECT_EQ(sweep.asked, std::vector<std::string>{"reports of gpus-1"});
  const auto said = why_row(sweep, 4);
  ASSERT_TRUE(said);
  EXPECT_EQ(sweep.asked.back(), "ranks on gpus-0");
  EXPECT_EQ(said->json["looks"].size(), 1U);
  sweep.silent = true;
  EXPECT_NE(why_row(sweep, 4)->text.find("  on gpus-0\nwhat its ranks do is not known: no answer\n"
                                         "lockstep logs 'abcd[4]'"),
            std::string::npos)
      << why_row(sweep, 4)->text;
  EXPECT_EQ(code_of(why_row(sweep, 5)), Errc::unavailable);
}

TEST(RowWhy, MachinesThatAreGoneHaveTakenTheRecordAlong) {
  Sweep sweep(nlohmann::ordered_json{{"state", "starting"}});
  EXPECT_EQ(why_row(sweep, 3).error().message,
            "the machines with the rows of job abcd are not there now");
}

}  // namespace
}  // namespace lockstep::jobs
