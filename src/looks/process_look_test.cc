#include "looks/process_look.h"

#include "io/fd.h"
#include "looks/process_reader.h"
#include "looks/wait_words.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace lockstep::looks {
namespace {

constexpr const char* kStat =
    "26633 (py) thon) 3) S 26617 26617 5164 0 -1 4194304 1057 0 1 0 12 5 7 9 20 0 1 0 5493957 "
    "14409728 2238 18446744073709551615 4321280 7148169 140734058667968 0 0 0 0 16781318 0 1 0 0";

TEST(ProcessLook, StatIsReadBehindTheLastParenthesis) {
  ProcessLook look;
  ASSERT_TRUE(parse_stat(kStat, look));
  EXPECT_EQ(look.state, 'S');
  EXPECT_EQ(look.start_ticks, 5493957U);
  EXPECT_EQ(look.cpu_ticks, 17);  // without those of children that were waited for
  EXPECT_EQ(look.rss, 2238 * sysconf(_SC_PAGESIZE));
}

TEST(ProcessLook, TextsCutOffAnywhereAreNoLook) {
  const std::string stat = kStat;
  for (std::size_t size = 0; size < stat.find(" 5493957"); ++size) {
    ProcessLook look;
    EXPECT_FALSE(parse_stat(stat.substr(0, size), look)) << size;
  }
  for (const char* text : {"", ")", "1 (a) ", "1 (a) S", "1 (a) SS 1 2 3"}) {
    ProcessLook look;
    EXPECT_FALSE(parse_stat(text, look)) << text;
    parse_status(text, look);
    EXPECT_EQ(look, ProcessLook{});
    EXPECT_FALSE(parse_io(text));
  }
}

TEST(ProcessLook, StatusSchedstatAndIo) {
  ProcessLook look;
  parse_status(
      "Name:\tvoluntary_ctxt_switches\nTracerPid:\t42\nnonvoluntary_ctxt_switches:\t3\n"
      "voluntary_ctxt_switches:\t9",
      look);
  EXPECT_EQ(look.tracer, 42);
  EXPECT_EQ(look.voluntary, 9);
  EXPECT_EQ(look.involuntary, 3);
  EXPECT_EQ(parse_schedstat("11976583 126718 3\n"), 11976583);
  EXPECT_EQ(parse_schedstat(""), std::nullopt);
  EXPECT_EQ(parse_io("rchar: 10\nwchar: 200\nsyscr: 61\nread_bytes: 4096\nwrite_bytes: 7\n"), 4306);
}

TEST(ProcessLook, SyscallTellsWhoReadsStandardInput) {
  ProcessLook look;
  parse_syscall("running\n", look);
  parse_syscall("-1 0x7ffd 0x7f2\n", look);
  EXPECT_EQ(look.syscall, -1);
  parse_syscall(std::to_string(SYS_read) + " 0x3 0x7f63 0x20000 0x0 0x0 0x0 0x7ffd 0x7f2\n", look);
  EXPECT_EQ(look.syscall, SYS_read);
  EXPECT_FALSE(look.reads_stdin);
  parse_syscall(std::to_string(SYS_read) + " 0x0 0x7f63 0x20000 0x0 0x0 0x0 0x7ffd 0x7f2\n", look);
  EXPECT_TRUE(look.reads_stdin);
}

TEST(ProcessLook, WaitsHaveAWord) {
  EXPECT_EQ(parse_wchan("0"), "");
  EXPECT_EQ(parse_wchan("nfs\x1b[2J\n"), "nfs\\x1b[2J");
  EXPECT_EQ(wait_word({.wchan = "poll_schedule_timeout.constprop.0"}), "poll");
  EXPECT_EQ(wait_word({.wchan = "wait_for_partner", .syscall = SYS_openat}), "FIFO");
  // Most containers hide the kernel function.
  EXPECT_EQ(wait_word({.syscall = SYS_futex}), "lock");
  EXPECT_EQ(wait_word({.syscall = SYS_getpid}), "");
}

// A child of this test that waits until the test ends it.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ != 0) return;
    if (fork() == 0) pause();
    while (true)
      pause();
  }
  ~Child() {
    for (const pid_t pid : ProcessReader().descendants(pid_, 64, true))
      kill(pid, SIGKILL);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(ProcessReader, ReadsProcessesThatRunAndKnowsThoseThatAreGone) {
  pid_t gone = 0;
  {
    const Child child;
    gone = child.pid();
    for (int tries = 0; tries < 500 && ProcessReader().descendants(gone, 64, false).empty();
         ++tries)
      usleep(10'000);
    std::optional<ProcessLook> look;
    for (int tries = 0; tries < 500 && !(look && look->state == 'S'); ++tries) {
      usleep(10'000);
      look = ProcessReader().read(gone);
    }
    ASSERT_TRUE(look);
    EXPECT_EQ(look->state, 'S');
    EXPECT_GT(look->start_ticks, 0U);
    EXPECT_GT(look->main_ns, 0);
    EXPECT_GT(look->rss, 0);
    EXPECT_GE(look->syscall, 0);
    EXPECT_EQ(ProcessReader().descendants(getpid(), 64, false).size(), 2U);
    EXPECT_EQ(ProcessReader().descendants(getpid(), 64, true).size(), 2U);
    EXPECT_EQ(ProcessReader().descendants(getpid(), 1, false), std::vector<pid_t>{gone});
  }
  EXPECT_FALSE(ProcessReader().read(gone));
}

TEST(ProcessReader, FilesThatTheKernelRefusesLeaveTheirPartEmpty) {
  char name[] = "/tmp/lockstep_looks_XXXXXX";
  const std::string root = mkdtemp(name);
  std::filesystem::create_directories(root + "/7");
  ASSERT_TRUE(io::write_file(root + "/7/stat", kStat));
  const auto look = ProcessReader(root).read(7);
  ASSERT_TRUE(look);
  EXPECT_EQ(look->wchan, "");
  EXPECT_EQ(look->io, 0);
  // Without scheduler statistics, the ticks of all threads stand for the main thread.
  EXPECT_EQ(look->main_ns, 17 * (1'000'000'000 / sysconf(_SC_CLK_TCK)));
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace lockstep::looks
