// Capture under load: slow consoles, endless lines, many writers.
#include "logs/capture_testing.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::logs {
namespace {
constexpr int kWriters = 8;
constexpr int kLines = 2000;

// Line n of writer i.
std::string line_of(int i, int n) {
  return std::to_string(i) + "." + std::to_string(n) +
         std::string(static_cast<std::size_t>(n % 300), static_cast<char>('a' + i)) + "\n";
}

// Writes the lines of one writer in pieces, which seldom end at the end of a line.
class OddWriter {
 public:
  OddWriter(std::unique_ptr<Capture> capture, int i) : capture_(std::move(capture)) {
    for (int n = 0; n < kLines; ++n)
      text_ += line_of(i, n);
    left_ = text_;
    EXPECT_EQ(fcntl(capture_->child_stdout_fd(), F_SETFL, O_NONBLOCK), 0);
  }
  // A full pipe takes nothing more: keep the rest for the next time.
  void write_a_piece() {
    if (left_.empty()) return;
    const ssize_t written =
        write(capture_->child_stdout_fd(), left_.data(), std::min(size_, left_.size()));
    if (written <= 0) return;
    left_.remove_prefix(static_cast<std::size_t>(written));
    size_ = size_ * 7 % 1009;
    if (left_.empty()) capture_->close_child_ends();
  }
  bool drained() const { return capture_->drained(); }

 private:
  std::unique_ptr<Capture> capture_;
  std::string text_;
  std::string_view left_;
  std::size_t size_ = 1;
};

void expect_whole_and_in_order(std::string_view text) {
  std::vector<int> next(kWriters, 0);
  int torn = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    ASSERT_NE(end, std::string_view::npos);
    const int i = text[1] - '0';
    ASSERT_TRUE(i >= 0 && i < kWriters) << text.substr(0, 50);
    const int n = next[static_cast<std::size_t>(i)]++;
    torn += text.substr(0, end + 1) != "[" + std::to_string(i) + "]:" + line_of(i, n);
    text.remove_prefix(end + 1);
  }
  EXPECT_EQ(torn, 0);
  for (const int count : next)
    EXPECT_EQ(count, kLines);
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

// The writers take turns here instead of running in threads: an unfinished line is shown after 20
// ms, and on a busy machine a thread may pause that long. Before each turn of the loop, every
// writer in the middle of a line has written some more of it.
TEST_F(CaptureTest, LinesOfManyWritersAreNotTorn) {
  std::deque<OddWriter> writers;
  for (int i = 0; i < kWriters; ++i) {
    CapturePlan plan = tee_plan(dir_ + "/" + std::to_string(i));
    plan.prefix = "[" + std::to_string(i) + "]:";
    writers.emplace_back(open(plan), i);
  }
  Collector collector(out_.read.get(), milliseconds(5));
  EXPECT_TRUE(turn_until(
      [&] {
        for (OddWriter& writer : writers)
          writer.write_a_piece();
        return std::all_of(writers.begin(), writers.end(),
                           [](const OddWriter& one) { return one.drained(); });
      },
      50000));
  EXPECT_TRUE(console_->drain(io::Clock::now() + milliseconds(20000)));
  writers.clear();
  console_.reset();
  out_.write.reset();
  expect_whole_and_in_order(collector.text());
}

}  // namespace
}  // namespace lockstep::logs
