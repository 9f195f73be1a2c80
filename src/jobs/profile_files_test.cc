#include "jobs/profile_files.h"

#include "base/error_testing.h"
#include "codec/json.h"
#include "io/fd.h"
#include "proc/signals.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace lockstep::jobs {
namespace {

class ProfileFiles : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(io::write_file(folder_ + "/" + name, text));
  }

  static Status take(const std::string& from, const std::string& to) {
    return take_trace(from, to, [] { return Status(); });
  }

  std::string folder_ = "/tmp/profile_files_XXXXXX";
};

std::string event(int number, const std::string& more = {}) {
  return "{" + more + "\"traceEvents\": [{\"pid\": " + std::to_string(number) + "}]}";
}

TEST_F(ProfileFiles, NothingButAFileIsTaken) {
  put("secret", "s");
  const std::string to = folder_ + "/to";
  ASSERT_EQ(symlink("secret", (folder_ + "/link").c_str()), 0);
  EXPECT_FALSE(take(folder_ + "/link", to));
  ASSERT_EQ(mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  EXPECT_FALSE(take(folder_ + "/fifo", to));
  EXPECT_TRUE(take(folder_ + "/secret", to));
  EXPECT_EQ(io::read_file(to).value(), "s");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/secret"));
}

TEST_F(ProfileFiles, AnOlderTraceStaysIfTheNewOneIsNotWhole) {
  const std::string to = folder_ + "/rank-0.json";
  put("rank-0.json", "an older and longer trace");
  const Status failed = write_trace(to, [&](const io::Fd& file) -> Status {
    EXPECT_TRUE(io::write_all(file.get(), "half", to));
    return fail(Errc::unavailable, "the host is gone");
  });
  EXPECT_EQ(failed.error().message, "the host is gone");
  EXPECT_EQ(io::read_file(to).value(), "an older and longer trace");
  EXPECT_FALSE(std::filesystem::exists(to + ".part"));
  EXPECT_FALSE(take(folder_ + "/no", to));
  put("new", "new");
  EXPECT_EQ(take_trace(folder_ + "/new", to, [] { return fail(Errc::canceled, "stopped"); })
                .error()
                .message,
            "stopped");
  EXPECT_EQ(io::read_file(to).value(), "an older and longer trace");
  EXPECT_EQ(io::read_file(folder_ + "/new").value(), "new");
  ASSERT_TRUE(take(folder_ + "/new", to));
  EXPECT_EQ(io::read_file(to).value(), "new");
  EXPECT_FALSE(std::filesystem::exists(to + ".part"));
}

// In a shared folder another user may have planted these under the names of our files.
TEST_F(ProfileFiles, WhatLiesInTheWayIsNeitherWrittenToNorWaitedFor) {
  put("secret", "s");
  const std::string to = folder_ + "/rank-0.json";
  const std::string trace = event(1) + std::string(200'000, ' ');
  ASSERT_EQ(mkfifo((to + ".part").c_str(), 0600), 0);
  ASSERT_EQ(symlink("secret", (folder_ + "/profile.json").c_str()), 0);
  alarm(20);  // the write into a FIFO blocks
  const Status written =
      write_trace(to, [&](const io::Fd& file) { return io::write_all(file.get(), trace, to); });
  alarm(0);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(io::read_file(to).value(), trace);
  ASSERT_TRUE(merge_traces(folder_, {0}));
  EXPECT_EQ(io::read_file(folder_ + "/secret").value(), "s");
}

TEST_F(ProfileFiles, AStopSignalEndsTheCopyAndTheMerge) {
  sigset_t before;
  const sigset_t handled = proc::handled_signals();
  sigprocmask(SIG_BLOCK, &handled, &before);
  put("trace", event(1));
  put("rank-0.json", event(1));
  kill(getpid(), SIGTERM);
  const Status taken = take(folder_ + "/trace", folder_ + "/to");
  kill(getpid(), SIGINT);
  const auto merged = merge_traces(folder_, {0});
  sigprocmask(SIG_SETMASK, &before, nullptr);
  ASSERT_FALSE(taken);
  EXPECT_EQ(code_of(taken), Errc::canceled);
  EXPECT_EQ(taken.error().sys, SIGTERM);
  ASSERT_FALSE(merged);
  EXPECT_EQ(merged.error().sys, SIGINT);
  for (const char* half : {"/to", "/to.part", "/profile.json"})
    EXPECT_FALSE(std::filesystem::exists(folder_ + half)) << half;
  EXPECT_EQ(io::read_file(folder_ + "/trace").value(), event(1));
}

TEST_F(ProfileFiles, ABrokenTraceDoesNotSpoilTheOthers) {
  put("rank-0.json", event(10));
  put("rank-1.json", event(11).substr(0, 25));
  put("rank-2.json", event(12));
  put("rank-4.json", event(14, "\"a\": nan, "));
  put("rank-3.json", event(13, "\"baseTimeNanoseconds\": 5, "));
  const auto merged = merge_traces(folder_, {0, 1, 2, 3, 4});
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->ranks, (std::vector{0, 2}));
  EXPECT_EQ(merged->left_out,
            (std::vector<std::string>{"rank 1: the trace is not whole",
                                      "rank 3: its times count from another moment",
                                      "rank 4: the trace is malformed"}));
  const auto json = codec::parse_json(io::read_file(merged->path).value());
  ASSERT_TRUE(json.is_object());
  ASSERT_EQ(json["traceEvents"].size(), 2U);
  EXPECT_EQ(json["traceEvents"][1]["pid"], 10'000'012);
}

}  // namespace
}  // namespace lockstep::jobs
