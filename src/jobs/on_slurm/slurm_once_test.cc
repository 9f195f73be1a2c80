#include "jobs/on_slurm/slurm_once.h"

#include "base/error_testing.h"
#include "jobs/on_slurm/slurm_world_testing.h"

namespace lockstep::jobs::on_slurm {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

class SlurmOnceTest : public SlurmWorldTest {
 protected:
  Result<std::string> before() { return submitted_before(folder_, world()); }

  const slurm::JobFolder folder_{place_.folder};
};

TEST_F(SlurmOnceTest, TheNoteOfASubmissionAnswersARepeatedRequest) {
  ASSERT_TRUE(note_submitted(folder_, known()));
  EXPECT_EQ(*before(), "7");
  EXPECT_TRUE(slurm_.asked.empty());
  const auto noted = find_submitted("aaaa1111");
  ASSERT_TRUE(noted);
  EXPECT_EQ(noted->name, "train");
  EXPECT_EQ(noted->created_ms, 1'000'000'000);
}

TEST_F(SlurmOnceTest, ARunningJobAnswersForASubmissionThatDiedBeforeItsNote) {
  keep({.stage = slurm::Stage::running, .job = "7"});
  EXPECT_EQ(*before(), "7");
}

// The request of a killed sbatch may reach the controller late.
TEST_F(SlurmOnceTest, TheQueueIsAskedTwice) {
  slurm_.script = folder_.at("script");
  EXPECT_EQ(*before(), "7");
  EXPECT_EQ(time_.count(), 0);
  slurm_.script = "/another/script";
  EXPECT_EQ(*before(), "");
  EXPECT_EQ(time_, seconds(2));
  EXPECT_EQ(slurm_.times("squeue"), 3);
  EXPECT_FALSE(fs::exists(folder_.path())) << "cleared for the next submission";
  EXPECT_EQ(*before(), "") << "nothing was ever submitted from there";
}

// Submitting again now could run the job twice.
TEST_F(SlurmOnceTest, WithoutAnAnswerOfSlurmNothingIsCleared) {
  slurm_.answers = false;
  const auto unknown = before();
  EXPECT_EQ(code_of(unknown), Errc::canceled);
  EXPECT_TRUE(fs::exists(folder_.path()));
}

TEST_F(SlurmOnceTest, ADamagedNoteIsNoNote) {
  for (const char* text : {"", "[]", "{}", R"({"plan":"{}"})", R"({"plan":7,"name":[]})",
                           R"({"plan":"{\"slurm\":{\"job\":\"-h\"}}"})"}) {
    ASSERT_TRUE(io::write_file(folder_.at("submitted.json"), text));
    EXPECT_FALSE(find_submitted("aaaa1111")) << text;
  }
  EXPECT_FALSE(find_submitted("../aaaa1111"));
}

TEST_F(SlurmOnceTest, OneSubmissionAtATime) {
  const auto lock = SubmitLock::take();
  EXPECT_TRUE(lock);
  EXPECT_TRUE(fs::exists(top_ + "/lockstep/slurm/submit.lock"));
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
