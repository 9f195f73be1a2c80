// Runs fake nvidia-smi programs.
#include "agent/gpu_reader.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::agent {
namespace {

class GpuReaders : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lockstep_gpu_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    environment_ = {{"PATH", folder_ + ":/usr/bin:/bin"}, {"FOLDER", folder_}};
    auto none = proc::Containment::set_up(proc::Rung::none);
    ASSERT_TRUE(none);
    containment_.emplace(std::move(*none));
  }
  void TearDown() override {
    reader_.reset();
    std::filesystem::remove_all(folder_);
  }

  // body: lines of sh. Each start leaves its pid in FOLDER/starts.
  void put_program(const std::string& body) {
    const std::string path = folder_ + "/nvidia-smi";
    ASSERT_TRUE(io::write_file(path, "#!/bin/sh\necho $$ >>$FOLDER/starts\n" + body));
    ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  }
  void ask() {
    if (!reader_)
      reader_ = std::make_unique<GpuReader>(
          loop_, environment_, host::GpuVendor::nvidia, *containment_, [this] { ++ended_; },
          [this](const host::GpuUse& use) { uses_.push_back(use); });
    reader_->ask();
  }
  // Runs the loop until a fact is true, at most for a while.
  template <class Fact>
  bool comes(Fact fact) {
    const auto end = io::Clock::now() + std::chrono::seconds(20);
    bool is_true = false;
    io::Timer beat(loop_);
    std::function<void()> look = [&] {
      is_true = fact();
      if (is_true || io::Clock::now() > end) return loop_.stop();
      beat.start(std::chrono::milliseconds(5), look);
    };
    beat.start({}, look);
    loop_.run();
    return is_true;
  }
  std::vector<pid_t> starts() const {
    std::vector<pid_t> pids;
    std::string text = io::read_file(folder_ + "/starts", 4096).value_or("");
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      pids.push_back(std::stoi(text));
      text.erase(0, end + 1);
    }
    return pids;
  }
  static bool is_gone(pid_t pid) { return kill(pid, 0) != 0; }
  // Returns whether the process has ended. A zombie has ended, too.
  static bool is_dead(pid_t pid) {
    const auto stat = io::read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
    return !stat || stat->find(") Z") != std::string::npos;
  }

  std::string folder_;
  Environment environment_;
  std::optional<proc::Containment> containment_;
  io::Loop loop_;
  std::vector<host::GpuUse> uses_;
  int ended_ = 0;
  std::unique_ptr<GpuReader> reader_;
};

constexpr const char* kTwoGpus =
    "echo '0, GPU-a, 97, 1024, 2048, 300, 60'\necho '1, GPU-b, 5, 1024, 2048, 80, 40'\n";

TEST_F(GpuReaders, TellWhatTheChildPrints) {
  put_program(std::string("echo \"$*\" >$FOLDER/options\n") + kTwoGpus + "exec sleep 1000\n");
  ask();
  EXPECT_TRUE(reader_->is_pending());
  ASSERT_TRUE(comes([&] { return uses_.size() == 2; }));
  EXPECT_FALSE(reader_->is_pending());
  EXPECT_EQ(host::gpu_use_words(uses_[0]), "GPU 0: 97 %, 1 of 2 GiB, 300 W, 60 C");
  EXPECT_NE(io::read_file(folder_ + "/options", 4096)->find("gpu_recovery_action --format"),
            std::string::npos);
  ask();
  EXPECT_EQ(starts().size(), 1U) << "one child is enough";
  const pid_t child = starts()[0];
  EXPECT_FALSE(is_dead(child));
  reader_->close();
  EXPECT_TRUE(comes([&] { return is_dead(child); }));
}

TEST_F(GpuReaders, AskOldDriversAgainAtOnce) {
  put_program(std::string("case \"$*\" in *recovery*) echo 'Field \"gpu_recovery_action\" is not a "
                          "valid field to query.'; exit 2;; esac\n") +
              kTwoGpus + "exec sleep 1000\n");
  ask();
  ASSERT_TRUE(comes([&] { return ended_ == 1; }));
  // A failure would pause. Without a pause, the next turn of the loop starts a child.
  EXPECT_TRUE(comes([] { return true; }));
  EXPECT_TRUE(reader_->is_pending() || !uses_.empty());
  EXPECT_EQ(reader_->failure(), "");
  ASSERT_TRUE(comes([&] { return uses_.size() == 2; }));
  EXPECT_EQ(starts().size(), 2U);
}

TEST_F(GpuReaders, KillAChildThatBabbles) {
  for (const char* babble : {"yes", "tr '\\n' x </dev/zero"}) {
    uses_.clear();
    reader_.reset();
    std::filesystem::remove(folder_ + "/starts");
    put_program(std::string("exec ") + babble + "\n");
    ask();
    ASSERT_TRUE(comes([&] { return starts().size() == 1 && is_gone(starts()[0]); })) << babble;
    EXPECT_TRUE(uses_.empty());
    EXPECT_EQ(reader_->failure(), "nvidia-smi prints too much; run it by hand");
    EXPECT_FALSE(reader_->is_pending());
  }
}

TEST_F(GpuReaders, LiveWithoutAProgram) {
  environment_["PATH"] = folder_;
  ask();
  EXPECT_FALSE(reader_->is_pending());
  EXPECT_EQ(reader_->failure(),
            "nvidia-smi does not start: find nvidia-smi in PATH: No such file or directory");
  ask();
  EXPECT_TRUE(starts().empty());
}

TEST_F(GpuReaders, PauseAfterAChildThatDies) {
  put_program("exit 9\n");
  ask();
  ASSERT_TRUE(comes([&] { return starts().size() == 1 && is_gone(starts()[0]); }));
  ask();
  EXPECT_EQ(starts().size(), 1U);
  EXPECT_FALSE(reader_->is_pending());
  EXPECT_EQ(reader_->failure(), "nvidia-smi has ended with code 9; run it by hand");
}

TEST_F(GpuReaders, ForgetAFailureOnceAChildTells) {
  put_program("exit 9\n");
  ask();
  ASSERT_TRUE(comes([&] { return !reader_->failure().empty(); }));
  put_program(std::string(kTwoGpus) + "exec sleep 1000\n");
  reader_->close();  // without the pause
  ask();
  EXPECT_NE(reader_->failure(), "") << "nothing is told yet";
  ASSERT_TRUE(comes([&] { return !uses_.empty(); }));
  EXPECT_EQ(reader_->failure(), "");
}

TEST_F(GpuReaders, LeaveNoChildOfAWrapper) {
  put_program("sleep 1000 & echo $! >>$FOLDER/starts\nexit 0\n");
  ask();
  ASSERT_TRUE(comes([&] { return starts().size() == 2 && is_gone(starts()[0]); }));
  EXPECT_TRUE(comes([&] { return is_dead(starts()[1]); }));
}

}  // namespace
}  // namespace lockstep::agent
