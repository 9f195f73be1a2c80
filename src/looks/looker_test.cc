#include "looks/looker.h"

#include "io/fd.h"
#include "looks/looks_testing.h"
#include "looks/stack_source.h"
#include "looks/thread_reader.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/syscall.h>

#include <filesystem>
#include <utility>

namespace lockstep::looks {
namespace {

using std::chrono::milliseconds;

// A folder that stands for /proc. Its pids are larger than those of Linux.
class LookerTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lockstep_looks_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(pid_t pid, int start, const std::string& children = "") {
    const std::string folder = fmt::format("{}/{}", root_, pid);
    std::filesystem::create_directories(fmt::format("{}/task/{}", folder, pid));
    ASSERT_TRUE(io::write_file(
        folder + "/stat",
        fmt::format("{} (py) S 1 1 1 0 -1 0 0 0 0 0 3 4 0 0 20 0 1 0 {} 9 9", pid, start)));
    ASSERT_TRUE(io::write_file(fmt::format("{}/task/{}/children", folder, pid), children));
  }
  // In state D, in this kernel function. call: as the kernel prints it, "-1 ..." in a page fault.
  void stick(pid_t pid, const std::string& wchan, const std::string& call) {
    const std::string folder = fmt::format("{}/{}", root_, pid);
    const auto stat = io::read_file(folder + "/stat", 256);
    ASSERT_TRUE(stat);
    std::string text = *stat;
    text[text.find(')') + 2] = 'D';
    ASSERT_TRUE(io::write_file(folder + "/stat", text));
    ASSERT_TRUE(io::write_file(folder + "/wchan", wchan));
    ASSERT_TRUE(io::write_file(folder + "/syscall", call));
  }
  // The main thread has used so much CPU.
  void run(pid_t pid, int ns) {
    ASSERT_TRUE(
        io::write_file(fmt::format("{}/{}/schedstat", root_, pid), fmt::format("{} 0 1", ns)));
  }
  void end(pid_t pid) { std::filesystem::remove_all(fmt::format("{}/{}", root_, pid)); }

  std::unique_ptr<Looker> looker(const LookerOptions& options = {}) {
    return std::make_unique<Looker>(
        loop_, ProcessReader(root_),
        [this](pid_t pid) -> std::optional<stacks::ThreadStack> {
          ++stacks_read_[pid];
          if (pid == slow_) spend(kBudget);
          const auto found = stacks_.find(pid);
          if (found == stacks_.end()) return std::nullopt;
          return stack_of(found->second);
        },
        [this](std::vector<RankLook>& looks, io::TimePoint) {
          ++looks_seen_;
          last_ = looks;
          loop_.stop();
        },
        options);
  }

  static constexpr milliseconds kBudget{30};
  static void spend(milliseconds time) {
    for (const auto end = io::Clock::now() + time; io::Clock::now() < end;) {
    }
  }
  // Returns whether a child of the rank is seen in one of some looks. A loaded machine may take the
  // budget of a look away.
  static bool sees_children(Looker& looks, std::size_t rank) {
    bool seen = false;
    for (int i = 0; i < 10 && !seen; ++i)
      seen = !looks.look()[rank].children.empty();
    return seen;
  }

  io::Loop loop_;
  std::string root_;
  std::map<pid_t, std::vector<stacks::Frame>> stacks_;
  std::map<pid_t, int> stacks_read_;
  std::vector<RankLook> last_;
  int looks_seen_ = 0;
  pid_t slow_ = 0;  // its stack takes the whole budget
};

TEST_F(LookerTest, LooksOnceAPeriodUntilPaused) {
  put(90000010, 5);
  stacks_[90000010] = in_backward();
  const auto looks = looker({.period = milliseconds(5)});
  looks->watch({{.rank = 3, .pid = 90000010}});
  for (int i = 0; i < 3; ++i)
    loop_.run();
  EXPECT_EQ(looks_seen_, 3);
  ASSERT_EQ(last_.size(), 1U);
  EXPECT_EQ(last_[0].rank, 3);
  EXPECT_EQ(what_doing(last_[0]).doing, Doing::backward);
  looks->watch({});
  loop_.run();  // returns: no timer is left
  EXPECT_EQ(looks_seen_, 3);
}

TEST_F(LookerTest, TheMemoryOfARankThatIsStuckSinceTheLookIsNotRead) {
  put(90000010, 5);
  run(90000010, 7);
  stacks_[90000010] = in_backward();
  const auto looks = looker();
  looks->watch({{.rank = 0, .pid = 90000010}});
  const RankLook look = looks->look()[0];
  const ProcessReader reader(root_);
  EXPECT_TRUE(may_read_now(reader, look));
  stick(90000010, "nfs_wait_bit_killable", "-1 0x7f 0x7f");
  EXPECT_FALSE(may_read_now(reader, look));
  EXPECT_TRUE(looks->look()[0].stack) << "the stack of the look before";
  // A command asks between two looks.
  StackSource stacks;
  Answer answer;
  read_threads(std::span(&look, 1), {.rank = 0}, reader, stacks, answer);
  EXPECT_EQ(stacks.reason(look.pid), "") << "its memory was read";
  ASSERT_EQ(answer.ranks.size(), 1U);
  EXPECT_EQ(answer.ranks[0].threads.size(), 1U) << "the stack of the look before";
  put(90000010, 6);
  EXPECT_FALSE(may_read_now(reader, look)) << "another process";
  end(90000010);
  EXPECT_FALSE(may_read_now(reader, look));
}

// After a read that had to wait, looks leave the memory of the process alone for a while.
TEST_F(LookerTest, WhileReadsPauseTheLastStackIsShown) {
  put(90000010, 5);
  run(90000010, 7);
  stacks_[90000010] = in_own_code(41);
  const auto looks = looker();
  looks->watch({{.rank = 0, .pid = 90000010}});
  looks->look();
  stacks_.clear();
  const RankLook look = looks->look()[0];
  const ProcessReader reader(root_);
  ASSERT_TRUE(may_read_now(reader, look));
  StackSource stacks;  // reads the real machine, which has no such process
  for (const Question& question :
       {Question{.rank = 0}, Question{.threads = true}, Question{.native = true}}) {
    EXPECT_FALSE(stacks.main_stack(look.pid));
    Answer answer;
    read_threads(std::span(&look, 1), question, reader, stacks, answer);
    ASSERT_EQ(answer.ranks.size(), 1U);
    EXPECT_NE(threads_text(answer.ranks[0]).find("job.py:41 in hang_here"), std::string::npos)
        << threads_text(answer.ranks[0]);
  }
}

TEST_F(LookerTest, ProcessThatGetsThePidLaterIsNotTheRank) {
  put(90000010, 5);
  const auto looks = looker();
  looks->watch({{.rank = 0, .pid = 90000010}, {.rank = 1, .pid = 90000011}});
  EXPECT_TRUE(looks->look()[0].process);
  EXPECT_FALSE(looks->look()[1].process);
  put(90000010, 6);
  put(90000011, 7);
  EXPECT_FALSE(looks->look()[0].process);
  EXPECT_FALSE(looks->look()[1].process);
  put(90000010, 5);
  EXPECT_FALSE(looks->look()[0].process);
}

TEST_F(LookerTest, ChildrenAreListedPinnedAndBounded) {
  put(90000010, 5, "90000020 90000021 ");
  put(90000020, 6, "90000030 ");
  put(90000021, 7);
  put(90000030, 8);
  const auto looks = looker({.children = 3, .list_every = 2});
  looks->watch({{.rank = 0, .pid = 90000010}});
  looks->look();  // asks the real /proc for the children of all threads, and finds none
  looks->look();
  const auto pids = [&] {
    std::vector<pid_t> out;
    for (const ChildLook& child : looks->look()[0].children)
      out.push_back(child.pid);
    return out;
  };
  EXPECT_EQ(pids(), (std::vector<pid_t>{90000020, 90000021, 90000030}));
  put(90000010, 5, "90000020 ");
  end(90000021);
  put(90000030, 9);
  EXPECT_EQ(pids(), std::vector<pid_t>{90000020});
  EXPECT_EQ(pids(), (std::vector<pid_t>{90000020, 90000030}));
  put(90000020, 6, "90000030 90000031 90000032 90000033 ");
  put(90000031, 1), put(90000032, 1), put(90000033, 1);
  looks->look();
  EXPECT_EQ(pids(), (std::vector<pid_t>{90000020, 90000030, 90000031}));
}

TEST_F(LookerTest, StacksOfChildrenAreReadWhileTheirRankStandsStill) {
  put(90000010, 5, "90000020 ");
  put(90000020, 6);
  stacks_[90000010] = in_loader();
  stacks_[90000020] = in_loader_child(19);
  const auto looks = looker({.list_every = 1});
  looks->watch({{.rank = 0, .pid = 90000010}});
  looks->look();
  EXPECT_EQ(stacks_read_[90000020], 0);
  const auto& still = looks->look();
  EXPECT_EQ(stacks_read_[90000020], 1);
  ASSERT_EQ(still[0].children.size(), 1U);
  EXPECT_TRUE(is_loader(still[0].children[0]));
  stacks_[90000010] = in_backward();
  run(90000020, 1);
  EXPECT_FALSE(looks->look()[0].children[0].stack);
}

TEST_F(LookerTest, ProcessesThatHaveNotRunKeepTheirStacks) {
  put(90000010, 5, "90000020 ");
  put(90000020, 6);
  run(90000010, 1);
  run(90000020, 1);
  stacks_[90000010] = in_loader();
  stacks_[90000020] = in_loader_child(19);
  const auto looks = looker({.list_every = 1});
  looks->watch({{.rank = 0, .pid = 90000010}});
  const auto have_stacks = [&] {
    const RankLook& look = looks->look()[0];
    return std::pair(look.stack.has_value(), look.children[0].stack.has_value());
  };
  looks->look();
  EXPECT_EQ(have_stacks(), std::pair(true, true));
  stacks_.clear();  // not readable now
  EXPECT_EQ(have_stacks(), std::pair(true, true));
  run(90000020, 2);
  EXPECT_EQ(have_stacks(), std::pair(true, false));
  run(90000010, 2);
  EXPECT_EQ(have_stacks(), std::pair(false, false));
}

TEST_F(LookerTest, ProcessThatWasReadOnceIsKnownAsPython) {
  put(90000010, 5);
  const auto looks = looker();
  looks->watch({{.rank = 0, .pid = 90000010}});
  EXPECT_FALSE(looks->look()[0].was_read);
  stacks_[90000010] = in_loader();
  EXPECT_TRUE(looks->look()[0].was_read);
  stacks_.clear();
  run(90000010, 1);
  EXPECT_FALSE(looks->look()[0].stack);
  // Another rank turns out to run below a wrapper.
  looks->watch({{.rank = 0, .pid = 90000010}, {.rank = 1, .pid = 90000011}});
  EXPECT_TRUE(looks->look()[0].was_read);
  put(90000010, 6);
  EXPECT_FALSE(looks->look()[0].was_read) << "another process";
}

TEST_F(LookerTest, SlowReadingOfRanksLeavesTimeForTheirChildren) {
  put(90000010, 5, "90000020 ");
  put(90000020, 6);
  slow_ = 90000010;
  const auto looks = looker({.budget = kBudget});
  looks->watch({{.rank = 0, .pid = 90000010}});
  EXPECT_TRUE(sees_children(*looks, 0));
}

TEST_F(LookerTest, ListOfChildrenThatFoundNoTimeIsReadAtTheNextLook) {
  put(90000010, 5, "90000020 ");
  put(90000011, 5, "90000021 ");
  put(90000020, 6);
  put(90000021, 6);
  slow_ = 90000020;
  const auto looks = looker({.budget = kBudget, .list_every = 1000});
  looks->watch({{.rank = 0, .pid = 90000010}, {.rank = 1, .pid = 90000011}});
  EXPECT_TRUE(looks->look()[1].children.empty());
  EXPECT_TRUE(sees_children(*looks, 1));
}

// A reader would wait for the lock of the memory map as long as the process waits for the server.
TEST_F(LookerTest, ProcessesStuckAtAFileServerAreReadInCallsThatLeaveTheirMemoryAlone) {
  put(90000010, 5, "90000020 ");
  put(90000020, 6);
  stacks_[90000010] = in_loader();
  stacks_[90000020] = in_loader_child(19);
  const auto looks = looker({.list_every = 1});
  looks->watch({{.rank = 0, .pid = 90000010}});
  looks->look();
  const auto read = [&](const std::string& wchan, const std::string& call) {
    stick(90000010, wchan, call);
    stick(90000020, wchan, call);
    stacks_read_.clear();
    EXPECT_EQ(looks->look()[0].children[0].process.wchan, wchan);
    return std::pair(stacks_read_.contains(90000010), stacks_read_.contains(90000020));
  };
  const std::string open = fmt::format("{} 0x7f 0x0", SYS_openat);
  EXPECT_EQ(read("fuse_get_req", open), std::pair(true, true));
  EXPECT_EQ(read("rpc_wait_bit_killable", open), std::pair(true, true));
  EXPECT_EQ(read("nfs_wait", fmt::format("{} 0x7f", SYS_mmap)), std::pair(false, false));
  EXPECT_EQ(read("nfs_wait", "-1 0x7f 0x7f"), std::pair(false, false));
}

TEST_F(LookerTest, WithoutTimeTheRanksAreReadAndTheirChildrenLater) {
  put(90000010, 5, "90000020 ");
  put(90000020, 6);
  const auto looks = looker({.budget = milliseconds(0), .list_every = 1});
  looks->watch({{.rank = 0, .pid = 90000010}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(looks->look()[0].process);
    EXPECT_TRUE(looks->look()[0].children.empty());
  }
}

TEST(StackSource, ALoadedMachineIsNoReasonToPause) {
  using std::chrono::milliseconds;
  EXPECT_TRUE(was_held_up(milliseconds(51), 1));
  EXPECT_FALSE(was_held_up(milliseconds(1000), 0)) << "other processes ran";
  EXPECT_FALSE(was_held_up(milliseconds(1), 3));
}

TEST(StackSource, OneReadingThatHadToWaitCostsOneLook) {
  std::vector<int> pauses;
  for (const int holds : {0, 1, 2, 3, 4, 5, 6, 1000})
    pauses.push_back(looks_to_pause(holds));
  EXPECT_EQ(pauses, (std::vector<int>{0, 1, 2, 4, 8, 16, 30, 30}));
}

}  // namespace
}  // namespace lockstep::looks
