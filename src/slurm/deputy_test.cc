#include "slurm/deputy.h"

#include "base/environment.h"
#include "io/fd.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>

namespace lockstep::slurm {
namespace {

// The folder of job 7, and fakes of Slurm's programs. The batch step has died with n1, and the
// deputy runs on n2.
class DeputyTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lockstep_deputy_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    path_ = env_text("PATH");
    setenv("PATH", (root_ + ":" + path_).c_str(), 1);
    setenv("SLURMD_NODENAME", "n2", 1);
    ASSERT_TRUE(io::write_file(root_ + "/out", ""));
    std::filesystem::create_directory(root_ + "/reports");
    put_tool("scancel", "");
  }
  void TearDown() override {
    setenv("PATH", path_.c_str(), 1);
    unsetenv("SLURMD_NODENAME");
    std::filesystem::remove_all(root_);
  }

  void put_tool(const std::string& name, const std::string& script) {
    const std::string path = root_ + "/" + name;
    ASSERT_TRUE(io::write_file(path, "#!/bin/sh\ncd " + root_ + "\n" + script + "\n"));
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  void put_report(const std::string& text) {
    ASSERT_TRUE(io::write_file(root_ + "/reports/0-n2.json", text));
  }
  Deputy deputy(BatchState state) {
    EXPECT_TRUE(watch().claim());
    state.job = "7";
    state.host = "n1";
    state.output = root_ + "/out";
    return {loop_, root_, watch(), std::move(state)};
  }
  void print_on_node(const std::string& text) {
    ASSERT_TRUE(io::write_file(watch().at(watch_log("n2")), text));
  }

  io::Loop loop_;
  std::string root_;

 private:
  WatchFolder watch() const { return {JobFolder(root_), 0, 1}; }

  std::string path_;
};

// The order in which files of a folder change.
class Changes {
 public:
  explicit Changes(const std::string& folder) : fd_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    EXPECT_GE(inotify_add_watch(fd_.get(), folder.c_str(), IN_MODIFY | IN_MOVED_TO), 0);
  }
  // Returns the names, without those of drafts.
  std::vector<std::string> take() const {
    std::vector<std::string> names;
    std::array<char, 16384> bytes{};
    const ssize_t got = read(fd_.get(), bytes.data(), bytes.size());
    for (ssize_t at = 0; at < got;) {
      inotify_event event{};
      std::memcpy(&event, bytes.data() + at, sizeof event);
      at += static_cast<ssize_t>(sizeof event);
      std::string name(bytes.data() + at);
      if (!name.ends_with(".tmp")) names.push_back(std::move(name));
      at += event.len;
    }
    return names;
  }

 private:
  io::Fd fd_;
};

// Followers of the job read its output no further once the end is recorded.
TEST_F(DeputyTest, TheLastLinesOfTheNodesAreCopiedBeforeTheEndIsRecorded) {
  Deputy made = deputy({});
  put_report(R"({"outcome":"succeeded","node":"n2"})");
  print_on_node("the last line\n");
  const Changes changes(root_);
  const auto code = made.conclude({});
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_EQ(*code, 0);
  EXPECT_EQ(changes.take(), (std::vector<std::string>{"out", "state.json"}));
  EXPECT_EQ(JobFolder(root_).state()->stage, Stage::ended);
  EXPECT_EQ(*io::read_file(root_ + "/out"), "the last line\n");
}

// Slurm kills the deputy as soon as the job is queued again.
TEST_F(DeputyTest, TheLastLinesOfTheNodesAreCopiedBeforeTheJobIsQueuedAgain) {
  put_tool("scontrol",
           "[ $1 = requeue ] && cp out out_then\n"
           "echo JobId=7 JobState=RUNNING Reason=None Requeue=1 Restarts=0");
  Deputy made = deputy({.requeue = true});
  put_report(R"({"outcome":"failed","node":"n2","reason":"n1 is gone"})");
  print_on_node("the last line\n");
  ASSERT_TRUE(made.conclude({}));
  EXPECT_EQ(JobFolder(root_).state()->stage, Stage::requeued);
  EXPECT_EQ(io::read_file(root_ + "/out_then").value_or("none"), "the last line\n");
}

}  // namespace
}  // namespace lockstep::slurm
