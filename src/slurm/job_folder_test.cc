#include "slurm/job_folder.h"

#include "base/error.h"
#include "io/fd.h"
#include "slurm/own_ending.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>

namespace lockstep::slurm {
namespace {

class JobFolders : public ::testing::Test {
 protected:
  JobFolders() : path_(::testing::TempDir() + "/job-XXXXXX") {
    LOCKSTEP_CHECK(mkdtemp(path_.data()) != nullptr);
    std::filesystem::create_directory(path_ + "/reports");
  }
  ~JobFolders() override { std::filesystem::remove_all(path_); }

  void report(const std::string& file, int rank, int at) const {
    const std::string text = fmt::format(
        R"({{"outcome":"failed","root_cause":{{"rank":{},"host":"n","exit_code":7,"time_ms":{}}}}})",
        rank, at);
    LOCKSTEP_CHECK(io::write_file(path_ + "/reports/" + file, text).has_value());
  }

  std::string path_;
};

TEST_F(JobFolders, AStateIsReadAsItWasWritten) {
  const BatchState state{.stage = Stage::requeued,
                         .job = "12",
                         .run = 3,
                         .host = "n1",
                         .started_ms = 4,
                         .ended_ms = 5,
                         .code = 6,
                         .cause = "node lost",
                         .words = "n2 is gone",
                         .earlier = {"time limit", "node lost"},
                         .requeue = true,
                         .lead_s = 90,
                         .output = "/a/b"};
  ASSERT_TRUE(JobFolder(path_).keep(state));
  const auto read = JobFolder(path_).state();
  ASSERT_TRUE(read);
  EXPECT_EQ(state_text(*read), state_text(state));
  EXPECT_EQ(read->run, 3);
  EXPECT_EQ(read->stage, Stage::requeued);
}

// Reports of earlier runs tell of other failures.
TEST_F(JobFolders, TheFirstFailureOfTheLastRunIsTheJobs) {
  ASSERT_TRUE(JobFolder(path_).keep({.stage = Stage::ended, .job = "12", .run = 1}));
  report("0-n1.json", 9, 10);
  report("1-n1.json", 1, 30);
  report("1-n2.json", 2, 20);
  report("1-n3.json", 3, 40);
  const auto own = read_own_ending(JobFolder(path_));
  ASSERT_TRUE(own);
  ASSERT_TRUE(own->culprit);
  EXPECT_EQ(own->culprit->rank, 2);
}

}  // namespace
}  // namespace lockstep::slurm
