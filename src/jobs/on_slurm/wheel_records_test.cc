#include "jobs/on_slurm/wheel_records.h"

#include "jobs/on_slurm/job_wheels.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::jobs::on_slurm {
namespace {

using Names = std::vector<std::string>;
using std::chrono::milliseconds;

class WheelRecordsTest : public testing::Test {
 protected:
  WheelRecordsTest() : folder_(unique_folder()) {
    std::filesystem::create_directories(folder_.at(kWheelsFolder));
  }
  ~WheelRecordsTest() override { std::filesystem::remove_all(folder_.path()); }

  // ctest runs the cases at the same time, each in a process of its own.
  static std::string unique_folder() {
    std::string name = testing::TempDir() + "wheel-records-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << name;
    return name;
  }

  slurm::JobFolder folder_;
  const Status failed_ = fail(Errc::invalid_input, "it does not work");
};

TEST_F(WheelRecordsTest, TheFirstNodesThatFailedAreKnownToAll) {
  const WheelRecords records(folder_, 0, "0");
  records.note("n1", {}, failed_);
  records.note("n2", {}, failed_);
  records.note("n3", {}, {});
  records.note("n4", {}, failed_);
  EXPECT_EQ(records.failed_first({"n1", "n2", "n3", "n4"}, milliseconds(0)), (Names{"n1", "n2"}));
  EXPECT_EQ(records.failed_first({"n3", "n4"}, milliseconds(0)), Names());
  // A node without a record may still be the first that can train.
  EXPECT_EQ(records.failed_first({"n1", "n9", "n2"}, milliseconds(0)), Names{"n1"});
  EXPECT_EQ(records.failed(), 3);
}

TEST_F(WheelRecordsTest, AnotherRunOrStepIsAnother) {
  WheelRecords(folder_, 0, "0").note("n1", {}, failed_);
  for (const auto& [run, step] : {std::pair{1, "0"}, {0, "1"}, {0, "10"}}) {
    const WheelRecords other(folder_, run, step);
    EXPECT_EQ(other.failed(), 0);
    EXPECT_EQ(other.failed_first({"n1"}, milliseconds(0)), Names());
  }
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
