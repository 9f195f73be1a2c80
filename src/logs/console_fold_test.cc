#include "logs/console_fold.h"

#include "logs/capture_testing.h"
#include "logs/line_prefix.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

namespace lockstep::logs {
namespace {

// Workers 0 to 2 have global ranks 8 to 10.
class ConsoleFoldTest : public CaptureTest {
 protected:
  void SetUp() override {
    CaptureTest::SetUp();
    console_->start_folding(Stream::out, [](std::string_view local_ranks, std::string_view ranks) {
      return fmt::format("[{}/{}]:", local_ranks, ranks);
    });
  }
  std::unique_ptr<Capture> worker(int rank, Route err = Route::inherit) {
    CapturePlan plan = tee_plan(dir_ + fmt::format("/{}.log", rank));
    plan.prefix = fmt::format("[{0}/{1}]:", rank, rank + 8);
    plan.source = {rank, rank + 8};
    plan.err.route = err;
    return open(std::move(plan));
  }
  static void say(const std::unique_ptr<Capture>& worker, std::string_view text) {
    put(worker->child_stdout_fd(), text);
  }
  // Returns all output until nothing waits.
  std::string shown() {
    std::string text;
    EXPECT_TRUE(turn_until([&] {
      text += there(out_.read.get());
      return !text.empty() && console_->pending(Stream::out) == 0;
    }));
    return text + there(out_.read.get());
  }
};

TEST_F(ConsoleFoldTest, WhatAllSayIsOneLineAtOnce) {
  const std::array workers = {worker(0), worker(1), worker(2)};
  const auto began = io::Clock::now();
  for (const auto& each : workers)
    say(each, "loss 2.31\n");
  EXPECT_EQ(shown(), "[0-2/8-10]:loss 2.31\n");
  EXPECT_LT(io::Clock::now() - began, milliseconds(90));
  EXPECT_EQ(logged("0.log"), "loss 2.31\n");
  EXPECT_EQ(logged("2.log"), "loss 2.31\n");
}

TEST_F(ConsoleFoldTest, WhatOneSaysWaitsForTheOthersAWhile) {
  const std::array workers = {worker(0), worker(1), worker(2)};
  const auto began = io::Clock::now();
  say(workers[1], "mine\n");
  EXPECT_EQ(shown(), "[1/9]:mine\n");
  EXPECT_GE(io::Clock::now() - began, milliseconds(100));
}

TEST_F(ConsoleFoldTest, ALineThatComesInPiecesIsWhole) {
  const std::array workers = {worker(0), worker(1)};
  say(workers[0], "lo");
  loop_.run_once();
  say(workers[0], "ss\n");
  say(workers[1], "loss\n");
  EXPECT_EQ(shown(), "[0-1/8-9]:loss\n");
}

// A prompt appears as early as without folding, after the worker's earlier lines.
TEST_F(ConsoleFoldTest, WhatIsNoLineDoesNotWait) {
  const std::array workers = {worker(0), worker(1)};
  say(workers[0], "hello\nname: ");
  EXPECT_EQ(shown(), "[0/8]:hello\n");
  EXPECT_EQ(shown(), "[0/8]:name: ");
  say(workers[0], "x\n");
  EXPECT_EQ(shown(), "x\n");
  say(workers[0], "10%\r20%\r\nnext\n");
  say(workers[1], "next\n");
  EXPECT_EQ(shown(), "[0/8]:10%\r[0/8]:20%\r\n[0-1/8-9]:next\n");
}

TEST_F(ConsoleFoldTest, TheAgentsOwnWordsComeBehindWhatWaits) {
  const std::array workers = {worker(0), worker(1)};
  say(workers[0], "a\n");
  loop_.run_once();
  console_->write(Stream::out, "report\n");
  EXPECT_EQ(shown(), "[0/8]:a\nreport\n");
}

TEST_F(ConsoleFoldTest, NothingIsLostAtTheEnd) {
  std::array workers = {worker(0), worker(1)};
  say(workers[0], "a\nb");
  say(workers[1], "c\n");
  loop_.run_once();
  for (auto& each : workers)
    each->drain_now();
  EXPECT_EQ(there(out_.read.get()), "[0/8]:a\n[0/8]:b\n[1/9]:c\n");
}

// A worker that has ended prints nothing more.
TEST_F(ConsoleFoldTest, NobodyWaitsForAWorkerThatHasEnded) {
  std::array workers = {worker(0), worker(1)};
  workers[1]->drain_now();
  say(workers[0], "alone\n");
  loop_.run_once();
  EXPECT_EQ(there(out_.read.get()), "[0/8]:alone\n");
}

TEST_F(ConsoleFoldTest, TheLastWordsWaitUntilTheConsoleIsDrained) {
  const std::array workers = {worker(0), worker(1)};
  say(workers[0], "a\n");
  loop_.run_once();
  EXPECT_GT(console_->pending(Stream::out), 0U);
  EXPECT_TRUE(console_->drain(io::Clock::now()));
  EXPECT_EQ(there(out_.read.get()), "[0/8]:a\n");
}

TEST_F(ConsoleFoldTest, TimesAreThoseOfTheFirst) {
  io::Loop loop;
  std::string text;
  ConsoleFold fold(
      loop, [](auto...) { return std::string(1, LinePrefix::kTime) + " "; },
      [&](std::string_view lines) { text += lines; });
  fold.attach({0, 0});
  fold.attach({1, 1});
  fold.put({0, 0}, "a\n");
  const std::string before =
      LinePrefix(std::string(1, LinePrefix::kTime)).at(std::chrono::system_clock::now());
  std::this_thread::sleep_for(milliseconds(20));
  fold.put({1, 1}, "a\n");
  fold.commit();
  EXPECT_LE(text.substr(0, before.size()), before);
}

}  // namespace
}  // namespace lockstep::logs
