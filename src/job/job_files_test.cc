#include "job/job_files.h"

#include "base/error_testing.h"
#include "io/own_folders.h"
#include "job/follower.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>

namespace lockstep::job {
namespace {

class JobFilesTest : public ::testing::Test {
 protected:
  JobFilesTest() {
    std::string name = "/tmp/lockstep-jobs-XXXXXX";
    folder_ = mkdtemp(name.data());
    setenv("XDG_STATE_HOME", folder_.c_str(), 1);
  }
  ~JobFilesTest() override {
    unsetenv("XDG_STATE_HOME");
    std::filesystem::remove_all(folder_);
  }
  static JobSpec spec(const std::string& id, std::int64_t created_ms = 1) {
    return {.id = id,
            .name = "n",
            .run = {"x"},
            .env = {"S=secret"},
            .folder = "f",
            .client = "c",
            .created_ms = created_ms};
  }

  std::string folder_;
};

TEST_F(JobFilesTest, AJobIsLostWhereItsSupervisorIsGoneWithoutAWord) {
  {
    const auto files = JobFiles::create(spec("aaaa"));
    ASSERT_TRUE(files) << files.error().message;
    ASSERT_TRUE(files->keep(PartState{.stage = Stage::running, .supervisor = 1}));
    EXPECT_EQ(JobFiles::open("aaaa")->record()->state.stage, Stage::running);
    EXPECT_FALSE(JobFiles::create(spec("aaaa"))) << "one folder, two supervisors";
  }
  const auto files = JobFiles::open("aaaa");
  EXPECT_FALSE(files->has_supervisor());
  EXPECT_EQ(files->record()->state.stage, Stage::lost);
  ASSERT_TRUE(files->keep(PartState{.stage = Stage::ended, .code = 3}));
  EXPECT_EQ(files->record()->state.stage, Stage::ended);
  EXPECT_EQ(files->record()->state.code, 3);
}

TEST_F(JobFilesTest, ALostPartIsResumedInItsOwnFolderAndALivingOneIsNot) {
  JobSpec again = spec("aaaa");
  again.resumes = true;
  {
    const auto files = JobFiles::create(spec("aaaa"));
    ASSERT_TRUE(io::write_all(files->output("out")->get(), "before\n", "out"));
    EXPECT_EQ(code_of(JobFiles::create(again)), Errc::already_exists);
  }
  const auto files = JobFiles::create(again);
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(io::read_file(files->path("out")).value(), "before\n");
}

TEST_F(JobFilesTest, NoFileHoldsTheEnvironment) {
  const auto files = JobFiles::create(spec("aaaa"));
  ASSERT_TRUE(files);
  for (const auto& entry : std::filesystem::directory_iterator(files->folder()))
    EXPECT_EQ(io::read_file(entry.path())->find("secret"), std::string::npos) << entry.path();
}

TEST_F(JobFilesTest, TheOldestEndedJobsAreForgotten) {
  const auto runs = JobFiles::create(spec("runs", 0));
  for (const char* id : {"aaa1", "aaa2", "aaa3"})
    ASSERT_TRUE(JobFiles::create(spec(id, id[3])));
  forget_old_jobs(2);
  EXPECT_TRUE(JobFiles::open("runs"));
  EXPECT_FALSE(JobFiles::open("aaa1"));
  EXPECT_TRUE(JobFiles::open("aaa2"));
  EXPECT_EQ(JobFiles::ids().size(), 3U);
}

TEST_F(JobFilesTest, NamesThatLeadElsewhereAreNoJobs) {
  EXPECT_FALSE(JobFiles::open("../jobs"));
  EXPECT_FALSE(JobFiles::open(""));
}

TEST_F(JobFilesTest, TheLastLinesBeginWhereALineBegins) {
  const auto files = JobFiles::create(spec("aaaa"));
  ASSERT_TRUE(files);
  EXPECT_EQ(last_lines(*files, 3).out, 0) << "nothing was said yet";
  std::string text;
  for (int i = 0; i < 30'000; ++i)
    text += "line " + std::to_string(i) + "\n";
  ASSERT_TRUE(io::write_all(files->output("out")->get(), text, "out"));
  ASSERT_TRUE(io::write_all(files->output("err")->get(), "a\nb", "err"));
  const auto rest = [&](std::int64_t lines) {
    return text.substr(static_cast<std::size_t>(last_lines(*files, lines).out));
  };
  EXPECT_EQ(rest(0), "");
  EXPECT_EQ(rest(2), "line 29998\nline 29999\n");
  EXPECT_EQ(rest(29'999).substr(0, 7), "line 1\n");
  EXPECT_EQ(rest(30'000), text);
  EXPECT_EQ(rest(90'000), text);
  EXPECT_EQ(last_lines(*files, 1).err, 2) << "a line without an end is one";
}

}  // namespace
}  // namespace lockstep::job
