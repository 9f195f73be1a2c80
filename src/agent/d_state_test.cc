#include "agent/d_state.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

namespace lockstep::agent {
namespace {

using std::chrono::seconds;

TEST(DState, StateFollowsTheLastBracket) {
  EXPECT_EQ(parse_stat_state("12 (python3) S 1 2 3"), 'S');
  EXPECT_EQ(parse_stat_state("12 (a) R (b) D 1 2"), 'D');
  for (const char* bad : {"", "12 python", "12 (x)", "12 (x) ", "12 (x)D"})
    EXPECT_EQ(parse_stat_state(bad), std::nullopt) << bad;
}

TEST(DState, ReadsAFakeProc) {
  char name[] = "/tmp/lockstep_proc_XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string proc = name;
  std::filesystem::create_directory(proc + "/7");
  ASSERT_TRUE(io::write_file(proc + "/7/stat", "7 (x) D 1\n"));
  ASSERT_TRUE(io::write_file(proc + "/7/wchan", "nfs_wait_bit_killable"));
  EXPECT_EQ(process_state(proc, 7), 'D');
  EXPECT_EQ(process_state(proc, 8), std::nullopt);
  EXPECT_EQ(what_holds(proc, 7), "waiting in nfs_wait_bit_killable");
  const std::string unnamed = "in an uninterruptible system call that the kernel does not name";
  for (const char* unknown : {"0", "0\n", ""}) {
    ASSERT_TRUE(io::write_file(proc + "/7/wchan", unknown));
    EXPECT_EQ(what_holds(proc, 7), unnamed);
  }
  std::filesystem::remove(proc + "/7/wchan");
  EXPECT_EQ(what_holds(proc, 7), unnamed);
  ASSERT_TRUE(io::write_file(proc + "/7/stat", "7 (x) Z 1\n"));
  EXPECT_EQ(what_holds(proc, 7), "in state Z");
  EXPECT_EQ(what_holds(proc, 8), "gone meanwhile");
  std::filesystem::remove_all(proc);
  EXPECT_EQ(process_state("/proc", getpid()), 'R');
}

TEST(DState, OnlyAnUnbrokenStayCounts) {
  DStateTracker tracker(seconds(10));
  const io::TimePoint start{};
  EXPECT_FALSE(tracker.observe(7, 'D', start));
  EXPECT_FALSE(tracker.observe(7, 'D', start + seconds(9)));
  EXPECT_TRUE(tracker.observe(7, 'D', start + seconds(10)));
  EXPECT_FALSE(tracker.observe(8, 'D', start + seconds(10)));
  EXPECT_FALSE(tracker.observe(7, 'S', start + seconds(11)));
  EXPECT_FALSE(tracker.observe(7, 'D', start + seconds(12)));
  tracker.forget(7);
  EXPECT_FALSE(tracker.observe(7, 'D', start + seconds(100)));
  EXPECT_FALSE(tracker.observe(7, std::nullopt, start + seconds(200)));
}

}  // namespace
}  // namespace lockstep::agent
