#include "logs/capture.h"

#include "base/log.h"
#include "base/text.h"
#include "logs/capture_testing.h"
#include "logs/line_hold.h"
#include "logs/line_prefix.h"
#include "logs/line_tagger.h"
#include "logs/log_file.h"
#include "logs/pty.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>

namespace lockstep::logs {
namespace {

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

TEST_F(CaptureTest, AWholeLineComesAtOnceAndTheRestWaitsForItsEnd) {
  auto capture = open(tee_plan());
  put(capture->child_stdout_fd(), "line\n 10%");
  loop_.run_once();
  EXPECT_EQ(there(out_.read.get()), "[default0]:line\n");
  EXPECT_FALSE(turn_until([&] { return there(out_.read.get()) != ""; }, 100));
  put(capture->child_stdout_fd(), " done\n");
  std::string rest;
  EXPECT_TRUE(turn_until([&] { return !(rest = there(out_.read.get())).empty(); }, 2000));
  EXPECT_EQ(rest, "[default0]: 10% done\n");
}

TEST_F(CaptureTest, AProgressBarDoesNotWaitForItsNextFrame) {
  auto capture = open(tee_plan());
  const auto begin = io::Clock::now();
  put(capture->child_stdout_fd(), "\r 10%");
  std::string shown;
  EXPECT_TRUE(turn_until([&] { return !(shown = there(out_.read.get())).empty(); }));
  EXPECT_EQ(shown, "[default0]:\r[default0]: 10%");
  EXPECT_GE(io::Clock::now() - begin, LineHold::kShort);
  EXPECT_LT(io::Clock::now() - begin, LineHold::kLong);
}

TEST_F(CaptureTest, FramesWithoutPauseAreShownMeanwhile) {
  auto capture = open(tee_plan());
  std::string shown;
  EXPECT_TRUE(turn_until([&] {
    put(capture->child_stdout_fd(), "\r1");
    return !(shown = there(out_.read.get())).empty();
  }));
  EXPECT_LT(shown.size(), LineTagger::kHold / 2) << "shown only once no more can be held";
}

// A '\r' makes a waiting line a drawn one.
TEST_F(CaptureTest, ALineThatBecomesABarWaitsNoLonger) {
  auto capture = open(tee_plan());
  put(capture->child_stdout_fd(), "step 1");
  EXPECT_FALSE(turn_until([&] { return there(out_.read.get()) != ""; }, 50));
  const auto begin = io::Clock::now();
  put(capture->child_stdout_fd(), "\r");
  std::string shown;
  EXPECT_TRUE(turn_until([&] { return !(shown = there(out_.read.get())).empty(); }));
  EXPECT_EQ(shown, "[default0]:step 1\r");
  EXPECT_LT(io::Clock::now() - begin, LineHold::kLong / 2);
}

TEST_F(CaptureTest, ALineThatStaysUnfinishedIsShownAndAgainWholeIfInterrupted) {
  auto capture = open(tee_plan());
  put(capture->child_stdout_fd(), "loading ...");
  const auto begin = io::Clock::now();
  std::string shown;
  EXPECT_TRUE(turn_until([&] { return !(shown = there(out_.read.get())).empty(); }));
  EXPECT_GE(io::Clock::now() - begin, LineHold::kLong);
  EXPECT_EQ(shown, "[default0]:loading ...");
  console_->write(Stream::out, "[default1]:hello\n");
  put(capture->child_stdout_fd(), " done\n");
  shown.clear();
  EXPECT_TRUE(turn_until([&] { return (shown += there(out_.read.get())).ends_with("done\n"); }));
  EXPECT_EQ(shown, "\n[default1]:hello\n[default0]:loading ... done\n");
}

TEST_F(CaptureTest, TheOnlySourceWithoutAPrefixShowsItsPromptsSoon) {
  CapturePlan plan;
  plan.err.route = Route::passthrough;
  auto capture = open(plan);
  const auto began = io::Clock::now();
  put(capture->child_stderr_fd(), "name: ");
  std::string shown;
  EXPECT_TRUE(turn_until([&] { return !(shown = there(err_.read.get())).empty(); }));
  EXPECT_EQ(shown, "name: ");
  EXPECT_LT(io::Clock::now() - began, LineHold::kLong / 2);
  // With another source, a line could be torn.
  const auto other = open(plan);
  put(other->child_stderr_fd(), "half");
  EXPECT_FALSE(turn_until([&] { return there(err_.read.get()) != ""; }, 100));
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

TEST_F(CaptureTest, TheNewestLineOfBothStreamsIsKnown) {
  CapturePlan plan = tee_plan();
  plan.err = {Route::file, dir_ + "/stderr.log", {}, nullptr};
  auto capture = open(plan);
  EXPECT_FALSE(capture->newest(io::Clock::now()).age) << "no output yet";
  put(capture->child_stdout_fd(), "step 1\nstep 2\nste");
  EXPECT_TRUE(turn_until([&] { return capture->printed().bytes == 17; }));
  auto newest = capture->newest(io::Clock::now() + milliseconds(70'000));
  EXPECT_EQ(newest.line, "step 2");
  ASSERT_TRUE(newest.age);
  EXPECT_GE(newest.age->count(), 70'000);
  EXPECT_LT(newest.age->count(), 90'000);
  EXPECT_EQ(capture->last_lines(2, io::Clock::now()), "step 2\nste");
  // The worker itself writes this file.
  put(capture->child_stderr_fd(), std::string(9000, 'x') + "\nlate\n");
  newest = capture->newest(io::Clock::now() + milliseconds(70'000));
  EXPECT_EQ(newest.line, "late");
  EXPECT_LT(newest.age->count(), 60'000);
  EXPECT_EQ(capture->last_lines(2, io::Clock::now() + milliseconds(70'000)), "step 2\nste\nlate");
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
  got.clear();  // the kernel takes its time to fill the terminal's other end
  EXPECT_TRUE(turn_until([&] { return !(got += there(terminal->master.get())).empty(); }));
  EXPECT_EQ(got, "last words");
  capture->close_child_ends();
  turn_until([&] { return !loop_.run_once(); });
  EXPECT_TRUE(capture->drained());
}

TEST_F(CaptureTest, AFullDiskIsSaidOnceAndTheConsoleGoesOn) {
  console_->take_log();
  log::set_level(log::Level::info);  // the count of lost bytes is logged at this level
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

TEST_F(CaptureTest, ATimeInThePrefixIsThatOfEachRead) {
  CapturePlan plan = tee_plan();
  plan.prefix = std::string(1, LinePrefix::kTime) + " [d0] ";
  plan.out.filters = {"loss"};
  plan.out.filtered = std::move(*LogFile::open(dir_ + "/filtered_stdout.log"));
  auto capture = open(plan);
  put(capture->child_stdout_fd(), "loss 1\n");
  EXPECT_TRUE(turn_until([&] { return logged() == "loss 1\n"; }));
  std::this_thread::sleep_for(milliseconds(3));
  put(capture->child_stdout_fd(), "loss 2");
  capture->close_child_ends();
  EXPECT_TRUE(turn_until([&] { return capture->drained(); }));
  constexpr std::size_t kTimeSize = std::string_view("2026-11-22 01:40:24.123").size();
  for (const std::string& text : {there(out_.read.get()), logged("filtered_stdout.log")}) {
    const auto lines = split(text, '\n');
    ASSERT_EQ(lines.size(), 2U) << text;
    ASSERT_GT(std::min(lines[0].size(), lines[1].size()), kTimeSize) << text;
    EXPECT_EQ(lines[0].substr(kTimeSize), " [d0] loss 1");
    EXPECT_EQ(lines[1].substr(kTimeSize), " [d0] loss 2");
    EXPECT_LT(lines[0].substr(0, kTimeSize), lines[1].substr(0, kTimeSize));
  }
}

TEST_F(CaptureTest, AFileThatCannotBeOpenedIsAnError) {
  const auto capture = Capture::open(loop_, *console_, tee_plan(dir_ + "/no/file"));
  ASSERT_FALSE(capture);
  EXPECT_NE(capture.error().message.find("/no/file: No such file"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::logs
