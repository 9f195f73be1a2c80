#include "agent/alarms.h"

#include "base/log.h"
#include "io/fd.h"
#include "io/loop_testing.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace lockstep::agent {
namespace {

class AlarmsTest : public testing::Test {
 protected:
  AlarmsTest() {
    char pattern[] = "/tmp/alarms_XXXXXX";
    folder_ = mkdtemp(pattern);
    log::set_sink(
        [](void* log, std::string_view text) { static_cast<std::string*>(log)->append(text); },
        &log_);
    recorder_ = RecorderFolder::make(folder_).value();
    collectives_.attempt_started(recorder_, 2);
    alarms_.attempt_started({.number = 1, .round = 1, .folder = folder_});
  }
  ~AlarmsTest() override {
    log::set_sink(nullptr, nullptr);
    std::filesystem::remove_all(recorder_->path());
    std::filesystem::remove_all(folder_);
  }
  // Rank 0 has a recorder, which has not answered yet.
  looks::Fold asked() {
    const std::string path = recorder_->path() + "/rank_0.pipe";
    mkfifo(path.c_str(), 0666);
    pipe_ = io::Fd(open(path.c_str(), O_RDONLY | O_NONBLOCK));
    looks::Fold fold{.nodes = {"n2"}, .groups = {{.ranks = {{0, {0}}}, .state = 'S'}}};
    collectives_.ask_now(fold);
    EXPECT_TRUE(collectives_.asking());
    return fold;
  }
  bool keeps(int file) const {
    return std::filesystem::exists(folder_ + "/hang-" + std::to_string(file) + ".txt");
  }
  bool says(const std::string& words) const { return log_.find(words) != std::string::npos; }

  io::Loop loop_;
  std::string folder_;
  std::string log_;
  std::optional<RecorderFolder> recorder_;
  io::Fd pipe_;
  Collectives collectives_{loop_};
  Alarms alarms_{collectives_, [] { return std::string("stacks"); }};
  looks::Evidence nothing_;
  looks::Evidence late_{.sentences = {"rank 1 never entered #7"}};
};

TEST_F(AlarmsTest, ATimeoutThatThisNodeHasSeenIsKeptOnce) {
  alarms_.time_out(1, {}, nothing_);
  EXPECT_TRUE(keeps(1));
  alarms_.hear("n1", {.alarm = "timeout: rank 1", .timeout = true}, nothing_);
  EXPECT_TRUE(says("the job stands still, see the log of n1"));
  EXPECT_FALSE(keeps(2));
  alarms_.hear("n1", {.alarm = "hang: no rank has run for 31 s"}, nothing_);
  EXPECT_TRUE(keeps(2)) << "another alarm";
}

TEST_F(AlarmsTest, ATimeoutThatTheLeaderHasToldIsKeptOnce) {
  alarms_.hear("n1", {.alarm = "timeout: rank 0", .timeout = true}, nothing_);
  EXPECT_TRUE(keeps(1));
  alarms_.time_out(1, {}, nothing_);
  EXPECT_FALSE(keeps(2));
}

TEST_F(AlarmsTest, LateAnswersNameTheAlarm) {
  alarms_.time_out(1, asked(), nothing_);
  alarms_.feed_judged(late_);
  EXPECT_TRUE(says("timeout: rank 1 never entered #7")) << log_;
}

// The recorders of another node may answer first.
TEST_F(AlarmsTest, DumpsOfThisNodeAreKeptBehindTheAnswersOfAnother) {
  alarms_.time_out(1, asked(), nothing_);
  alarms_.feed_judged(late_);
  EXPECT_FALSE(says("flight recorders: ")) << log_;
  std::ofstream(recorder_->path() + "/trace_rank_0")
      << R"({"version":"2.10","entries":[{"collective_seq_id":7}]})";
  ASSERT_TRUE(io::run_until(loop_, [&] { return !collectives_.asking(); }));
  alarms_.feed_judged(late_);
  EXPECT_TRUE(says("flight recorders: ")) << log_;
}

TEST_F(AlarmsTest, LateAnswersAfterAHangNameTheHang) {
  asked();
  alarms_.hear("n1", {.alarm = "hang: no rank has run for 31 s"}, nothing_);
  alarms_.feed_judged(late_);
  EXPECT_TRUE(says("hang: rank 1 never entered #7")) << log_;
}

}  // namespace
}  // namespace lockstep::agent
