#include "logs/capture.h"

#include "base/log.h"
#include "logs/log_file.h"
#include "logs/pty.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::logs {
namespace {
using std::chrono::milliseconds;
constexpr std::string_view kPrefix = "[default0]:";

void put(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(fd, bytes.data(), bytes.size());
    ASSERT_GT(size, 0);
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
}

// Everything that comes out of one end of the console, read by a thread.
class Collector {
 public:
  explicit Collector(int fd, milliseconds pause = milliseconds(0))
      : thread_([this, fd, pause] {
          char bytes[65536];
          ssize_t got = 0;
          while ((got = read(fd, bytes, sizeof bytes)) > 0) {
            text_.append(bytes, static_cast<std::size_t>(got));
            std::this_thread::sleep_for(pause);
          }
        }) {}
  // After the other end was closed.
  std::string text() {
    thread_.join();
    return text_;
  }

 private:
  std::string text_;
  std::thread thread_;
};

class CaptureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    char name[] = "/tmp/capture_test_XXXXXX";
    dir_ = mkdtemp(name);
    out_ = *io::make_pipe();
    err_ = *io::make_pipe();
    console_ = std::make_unique<Console>(
        loop_, Console::Options{out_.write.get(), err_.write.get(), 1 << 20, 256 << 10, true});
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::unique_ptr<Capture> open(CapturePlan plan) {
    auto capture = Capture::open(loop_, *console_, std::move(plan));
    EXPECT_TRUE(capture) << capture.error().message;
    return std::move(*capture);
  }
  CapturePlan tee_plan(std::string file = {}) const {
    CapturePlan plan;
    plan.prefix = kPrefix;
    plan.out.route = Route::tee;
    plan.out.path = file.empty() ? dir_ + "/stdout.log" : std::move(file);
    return plan;
  }
  bool turn_until(const std::function<bool()>& done, int ms = 10000) {
    const auto deadline = io::Clock::now() + milliseconds(ms);
    while (!done()) {
      if (io::Clock::now() > deadline) return false;
      if (!loop_.run_once()) std::this_thread::yield();
    }
    return true;
  }
  static std::string there(int fd) {
    int size = 0;
    ioctl(fd, FIONREAD, &size);
    std::string bytes(static_cast<std::size_t>(size), '\0');
    const ssize_t got = size > 0 ? read(fd, bytes.data(), bytes.size()) : 0;
    EXPECT_EQ(got, size);
    return bytes;
  }
  std::string logged(const char* name = "stdout.log") const {
    return io::read_file(dir_ + "/" + name, 1 << 30).value_or("none");
  }

  io::Loop loop_;
  std::string dir_;
  io::Pipe out_;
  io::Pipe err_;
  std::unique_ptr<Console> console_;
};

TEST_F(CaptureTest, TeeWritesTheFileRawAndTheConsoleWithPrefixes) {
  auto capture = open(tee_plan());
  EXPECT_EQ(capture->child_stderr_fd(), -1);
  int ends = 0;
  capture->set_on_drained([&] {
    ++ends;
    capture.reset();
  });
  const std::string text = "one\ntwo \xff\nlast";
  put(capture->child_stdout_fd(), text);
  EXPECT_FALSE(capture->drained());
  capture->close_child_ends();
  EXPECT_TRUE(turn_until([&] { return ends == 1; }));
  EXPECT_EQ(logged(), text);
  EXPECT_EQ(there(out_.read.get()), "[default0]:one\n[default0]:two \xff\n[default0]:last");
}

TEST_F(CaptureTest, AWholeLineComesAtOnceAndTheRestAfterAWhile) {
  auto capture = open(tee_plan());
  put(capture->child_stdout_fd(), "line\n 10%");
  loop_.run_once();
  EXPECT_EQ(there(out_.read.get()), "[default0]:line\n");
  const auto begin = io::Clock::now();
  std::string rest;
  EXPECT_TRUE(turn_until([&] { return !(rest = there(out_.read.get())).empty(); }, 2000));
  EXPECT_EQ(rest, "[default0]: 10%");
  EXPECT_GT(io::Clock::now() - begin, milliseconds(10));
  put(capture->child_stdout_fd(), " done\n");
  EXPECT_TRUE(turn_until([&] { return !(rest = there(out_.read.get())).empty(); }, 2000));
  EXPECT_EQ(rest, " done\n");
}

TEST_F(CaptureTest, RedirectAndDiscard) {
  CapturePlan plan;
  plan.out = {Route::discard, "", {}, nullptr};
  plan.err = {Route::file, dir_ + "/stderr.log", {}, nullptr};
  ASSERT_TRUE(io::write_file(dir_ + "/stderr.log", "old"));
  auto capture = open(plan);
  EXPECT_TRUE(capture->drained());
  put(capture->child_stdout_fd(), "lost");
  std::string text;
  for (int i = 0; i < 50000; ++i)
    text += "line " + std::to_string(i) + "\n";
  put(capture->child_stderr_fd(), text);
  EXPECT_EQ(logged("stderr.log"), text);
  EXPECT_EQ(capture->stderr_tail(2), "line 49998\nline 49999");
}

TEST_F(CaptureTest, StderrPassesUnchangedAndIsKept) {
  CapturePlan plan;
  plan.err.route = Route::passthrough;
  auto capture = open(plan);
  EXPECT_EQ(capture->child_stdout_fd(), -1);
  EXPECT_EQ(isatty(capture->child_stderr_fd()), 0);
  put(capture->child_stderr_fd(), "Traceback\n\x1b[31mboom\x1b[0m");
  capture->close_child_ends();
  EXPECT_TRUE(turn_until([&] { return capture->drained(); }));
  EXPECT_EQ(there(err_.read.get()), "Traceback\n\x1b[31mboom\x1b[0m");
  EXPECT_EQ(capture->stderr_tail(), "Traceback\nboom");
}

TEST_F(CaptureTest, AHiddenRankShowsNothingAndIsKept) {
  CapturePlan plan;
  plan.err.route = Route::keep;
  auto capture = open(plan);
  put(capture->child_stderr_fd(), "boom\n");
  capture->close_child_ends();
  EXPECT_TRUE(turn_until([&] { return capture->drained(); }));
  EXPECT_EQ(there(err_.read.get()), "");
  EXPECT_EQ(capture->stderr_tail(), "boom");
}

TEST_F(CaptureTest, OnATerminalTheWorkerSeesATerminal) {
  auto terminal = open_pty(-1);
  ASSERT_TRUE(terminal);
  winsize size{40, 120, 0, 0};
  ioctl(terminal->master.get(), TIOCSWINSZ, &size);
  Console console(loop_, {out_.write.get(), terminal->slave.get()});
  CapturePlan plan;
  plan.err.route = Route::passthrough;
  auto capture = std::move(*Capture::open(loop_, console, plan));
  const int child = capture->child_stderr_fd();
  EXPECT_EQ(isatty(child), 1);
  winsize seen{};
  EXPECT_EQ(ioctl(child, TIOCGWINSZ, &seen), 0);
  EXPECT_EQ(seen.ws_col, 120);
  size.ws_col = 99;
  ioctl(terminal->master.get(), TIOCSWINSZ, &size);
  capture->resize();
  EXPECT_EQ(ioctl(child, TIOCGWINSZ, &seen), 0);
  EXPECT_EQ(seen.ws_col, 99);
  put(child, "red\n");
  std::string got;
  EXPECT_TRUE(turn_until([&] { return !(got += there(terminal->master.get())).empty(); }));
  EXPECT_EQ(got, "red\n");
  put(child, "last words");
  capture->drain_now();
  EXPECT_EQ(capture->stderr_tail(), "red\nlast words");
  EXPECT_EQ(console.pending(Stream::err), 0u);
  got.clear();  // the terminal's own other end is filled by the kernel in its own time
  EXPECT_TRUE(turn_until([&] { return !(got += there(terminal->master.get())).empty(); }));
  EXPECT_EQ(got, "last words");
  capture->close_child_ends();
  turn_until([&] { return !loop_.run_once(); });
  EXPECT_TRUE(capture->drained());
}

TEST_F(CaptureTest, AFullDiskIsSaidOnceAndTheConsoleGoesOn) {
  console_->take_log();
  auto capture = open(tee_plan("/dev/full"));
  const int child = capture->child_stdout_fd();
  put(child, "one\n");
  loop_.run_once();
  put(child, "two\n");
  loop_.run_once();
  EXPECT_EQ(there(out_.read.get()), "[default0]:one\n[default0]:two\n");
  std::string said = there(err_.read.get());
  EXPECT_NE(said.find("cannot write to /dev/full: No space left on device"), std::string::npos);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  EXPECT_EQ(capture->lost_bytes(), 8u);
  capture.reset();
  said = there(err_.read.get());
  EXPECT_NE(said.find("/dev/full: 8 bytes"), std::string::npos) << said;
}

TEST_F(CaptureTest, AConsoleThatClosesLeavesTheFilesGoing) {
  auto capture = open(tee_plan());
  out_.read.reset();
  std::string text;
  for (int i = 0; i < 10; ++i) {
    put(capture->child_stdout_fd(), "line\n");
    loop_.run_once();
    text += "line\n";
  }
  EXPECT_TRUE(console_->broken(Stream::out));
  EXPECT_EQ(logged(), text);
}

TEST_F(CaptureTest, DrainNowDoesNotWaitForThoseWhoHoldThePipe) {
  auto capture = open(tee_plan());
  const io::Fd grandchild(dup(capture->child_stdout_fd()));
  bool called = false;
  capture->set_on_drained([&] { called = true; });
  put(grandchild.get(), "a\nlast words");
  capture->close_child_ends();
  capture->drain_now();
  EXPECT_TRUE(capture->drained());
  EXPECT_EQ(there(out_.read.get()), "[default0]:a\n[default0]:last words");
  put(grandchild.get(), "\nlate\n");
  EXPECT_TRUE(turn_until([&] { return logged().ends_with("late\n"); }));
  EXPECT_EQ(there(out_.read.get()), "\n[default0]:late\n");
  EXPECT_FALSE(called);
}

TEST_F(CaptureTest, DrainNowIsNotHeldUpByADescendantThatWritesForEver) {
  CapturePlan plan = tee_plan();
  auto capture = open(plan);
  const io::Fd grandchild(dup(capture->child_stdout_fd()));
  ASSERT_EQ(fcntl(grandchild.get(), F_SETFL, O_NONBLOCK), 0);
  Collector collector(out_.read.get());
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    const std::string line = std::string(1000, 'x') + "\n";
    while (!stop)
      (void)!write(grandchild.get(), line.data(), line.size());
  });
  capture->close_child_ends();
  const auto begin = io::Clock::now();
  capture->drain_now();
  EXPECT_LT(io::Clock::now() - begin, milliseconds(2000));
  stop = true;
  writer.join();
  capture.reset();
  console_.reset();
  out_.write.reset();
  collector.text();
}

TEST_F(CaptureTest, DuplicateFiltersCopyLinesWithTheirPrefix) {
  CapturePlan plan = tee_plan();
  plan.out.filters = {"loss"};
  plan.out.filtered = std::move(*LogFile::open(dir_ + "/filtered_stdout.log"));
  auto capture = open(plan);
  put(capture->child_stdout_fd(), "loss 1\nstep\nthe lo");
  loop_.run_once();
  put(capture->child_stdout_fd(), "ss");
  capture->close_child_ends();
  EXPECT_TRUE(turn_until([&] { return capture->drained(); }));
  EXPECT_EQ(logged("filtered_stdout.log"), "[default0]:loss 1\n[default0]:the loss");
}

TEST_F(CaptureTest, ASlowConsoleMakesTheWorkerWaitAndLosesNothing) {
  auto capture = open(tee_plan());
  std::size_t accepted = 0;
  const int child = capture->child_stdout_fd();
  ASSERT_EQ(fcntl(child, F_SETFL, O_NONBLOCK), 0);
  const std::string line(99, 'x');
  for (int idle = 0; idle < 100;) {
    const ssize_t size = write(child, (line + "\n").data(), 100);
    if (size > 0) accepted += static_cast<std::size_t>(size);
    idle = size > 0 ? 0 : idle + 1;
    loop_.run_once();
  }
  EXPECT_LT(accepted, 4u << 20) << "the worker should have been made to wait";
  EXPECT_LT(console_->pending(Stream::out), 2u << 20);
  Collector collector(out_.read.get());
  ASSERT_EQ(fcntl(child, F_SETFL, 0), 0);
  capture->close_child_ends();
  EXPECT_TRUE(turn_until([&] { return capture->drained(); }));
  EXPECT_TRUE(console_->drain(io::Clock::now() + milliseconds(5000)));
  capture.reset();
  console_.reset();
  out_.write.reset();
  EXPECT_EQ(logged().size(), accepted);
  EXPECT_EQ(collector.text().size(), accepted / 100 * (100 + kPrefix.size()));
}

TEST_F(CaptureTest, ALineOf64MiBPassesInBoundedMemory) {
  auto capture = open(tee_plan());
  constexpr std::size_t kSize = 64 << 20;
  Collector collector(out_.read.get());
  const int child = capture->child_stdout_fd();
  std::thread writer([&] {
    const std::string chunk(1 << 20, 'x');
    for (std::size_t i = 0; i < kSize; i += chunk.size())
      put(child, chunk);
    capture->close_child_ends();
  });
  std::size_t most = 0;
  EXPECT_TRUE(turn_until(
      [&] {
        most = std::max(most, console_->pending(Stream::out));
        return capture->drained();
      },
      50000));
  writer.join();
  EXPECT_LT(most, 2u << 20);
  EXPECT_TRUE(console_->drain(io::Clock::now() + milliseconds(5000)));
  capture.reset();
  console_.reset();
  out_.write.reset();
  EXPECT_EQ(collector.text().size(), kSize + kPrefix.size());
  EXPECT_EQ(std::filesystem::file_size(dir_ + "/stdout.log"), kSize);
}

// Lines of many writers, written in odd pieces, arrive whole and in order.
TEST_F(CaptureTest, LinesOfManyWritersAreNotTorn) {
  constexpr int kWriters = 8;
  constexpr int kLines = 2000;
  std::vector<std::unique_ptr<Capture>> captures;
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    CapturePlan plan = tee_plan(dir_ + "/" + std::to_string(i));
    plan.prefix = "[" + std::to_string(i) + "]:";
    captures.push_back(open(plan));
  }
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([i, capture = captures[static_cast<std::size_t>(i)].get()] {
      std::string text;
      for (int n = 0; n < kLines; ++n) {
        text += std::to_string(i) + "." + std::to_string(n) +
                std::string(static_cast<std::size_t>(n % 300), static_cast<char>('a' + i)) + "\n";
      }
      std::string_view left = text;
      for (std::size_t size = 1; !left.empty(); size = size * 7 % 1009) {
        put(capture->child_stdout_fd(), left.substr(0, size));
        left.remove_prefix(std::min(size, left.size()));
      }
      capture->close_child_ends();
    });
  }
  Collector collector(out_.read.get(), milliseconds(1));
  EXPECT_TRUE(turn_until(
      [&] {
        return std::all_of(captures.begin(), captures.end(),
                           [](const auto& one) { return one->drained(); });
      },
      50000));
  for (auto& writer : writers)
    writer.join();
  EXPECT_TRUE(console_->drain(io::Clock::now() + milliseconds(20000)));
  captures.clear();
  console_.reset();
  out_.write.reset();
  const std::string text = collector.text();
  std::vector<int> next(kWriters, 0);
  std::string_view left = text;
  int torn = 0;
  while (!left.empty()) {
    const std::size_t end = left.find('\n');
    ASSERT_NE(end, std::string_view::npos);
    const int i = left[1] - '0';
    ASSERT_TRUE(i >= 0 && i < kWriters) << left.substr(0, 50);
    const int n = next[static_cast<std::size_t>(i)]++;
    const std::string expected =
        "[" + std::to_string(i) + "]:" + std::to_string(i) + "." + std::to_string(n) +
        std::string(static_cast<std::size_t>(n % 300), static_cast<char>('a' + i));
    torn += left.substr(0, end) != expected;
    left.remove_prefix(end + 1);
  }
  EXPECT_EQ(torn, 0);
  for (const int count : next)
    EXPECT_EQ(count, kLines);
}

TEST_F(CaptureTest, AFileThatCannotBeOpenedIsAnError) {
  const auto capture = Capture::open(loop_, *console_, tee_plan(dir_ + "/no/file"));
  ASSERT_FALSE(capture);
  EXPECT_NE(capture.error().message.find("/no/file: No such file"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::logs
