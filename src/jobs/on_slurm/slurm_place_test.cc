#include "jobs/on_slurm/slurm_submit.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>

namespace lockstep::jobs::on_slurm {
namespace {

class SlurmPlaceTest : public ::testing::Test {
 protected:
  SlurmPlaceTest() {
    std::string name = "/tmp/lockstep-place-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~SlurmPlaceTest() override { std::filesystem::remove_all(folder_); }
  jobs::JobBook book() const { return jobs::JobBook::open(folder_).value(); }
  static jobs::KnownJob job(const std::string& id, const std::string& name,
                            std::int64_t created_ms) {
    jobs::KnownJob made{.id = id, .name = name, .place = "gpus", .command = "train.py"};
    made.created_ms = created_ms;
    return made;
  }

  std::string folder_;
};

// `lockstep why 2`, if Slurm's job 1 has an id of ours that begins with a 2.
TEST_F(SlurmPlaceTest, ANumberOfSlurmsIsNotTheBeginningOfAnId) {
  jobs::KnownJob known = job("2f0c9a31", "train", 1);
  known.plan = plan_text(SlurmPlace{.job = "1", .folder = "/f", .output = "/o"});
  ASSERT_TRUE(slurm_place(known));
  ASSERT_TRUE(book().add(known));
  const auto found = find_job(book(), "2");
  ASSERT_TRUE(found);
  EXPECT_TRUE(begins_only(*found, "2"));
  EXPECT_FALSE(begins_only(*find_job(book(), "1"), "1"));
  EXPECT_FALSE(begins_only(*find_job(book(), "2f0c9a31"), "2f0c9a31"));
  EXPECT_FALSE(begins_only(*find_job(book(), "train"), "train"));
}

// The chain was Slurm's job 2, and waits as job 4. The chain's own id begins with a 2.
TEST_F(SlurmPlaceTest, AnEarlierNumberOfAChainIsNotTheBeginningOfItsId) {
  std::filesystem::create_directories(folder_);
  slurm::BatchState state;
  state.stage = slurm::Stage::requeued;
  state.job = "2";
  state.next = "4";
  state.chain = 0;
  ASSERT_TRUE(slurm::JobFolder(folder_).keep(state));
  jobs::KnownJob known = job("2f0c9a31", "train", 1);
  known.plan = plan_text(SlurmPlace{.job = "2", .folder = folder_, .output = "/o"});
  ASSERT_TRUE(book().add(known));
  ASSERT_EQ(slurm_place(known)->job, "4");
  EXPECT_FALSE(begins_only(*find_job(book(), "2"), "2"));
  EXPECT_FALSE(begins_only(*find_job(book(), "4"), "4"));
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
