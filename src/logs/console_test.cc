#include "logs/console.h"

#include "base/log.h"
#include "io/fd.h"
#include "logs/pty.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

namespace lockstep::logs {
namespace {
using std::chrono::milliseconds;

io::TimePoint in(int ms) {
  return io::Clock::now() + milliseconds(ms);
}

std::string read_some(int fd, std::size_t most = 1 << 20) {
  std::string bytes(most, '\0');
  const ssize_t got = read(fd, bytes.data(), bytes.size());
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

struct Source final : ConsoleSource {
  void on_pause(bool value) override { paused = value; }
  void on_cut() override { ++cuts; }

  bool paused = false;
  int cuts = 0;
};

void say(Console& console, Source& source, std::string_view bytes, bool takes_over = false) {
  console.begin(Stream::out, source, takes_over).append(bytes);
  console.end(Stream::out, source, !bytes.ends_with('\n'));
}

// A console of two pipes.
class ConsoleOnPipes : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    out_ = *io::make_pipe();
    err_ = *io::make_pipe();
    console_ = std::make_unique<Console>(
        loop_, Console::Options{out_.write.get(), err_.write.get(), 100000, 10000, GetParam()});
  }

  io::Loop loop_;
  io::Pipe out_;
  io::Pipe err_;
  std::unique_ptr<Console> console_;
};
INSTANTIATE_TEST_SUITE_P(OpenedAnewOrPolled, ConsoleOnPipes, ::testing::Bool());

TEST_P(ConsoleOnPipes, WritesInTheSameTurn) {
  console_->write(Stream::out, "to out\n");
  console_->write(Stream::err, "to err\n");
  EXPECT_EQ(read_some(out_.read.get()), "to out\n");
  EXPECT_EQ(read_some(err_.read.get()), "to err\n");
}

TEST_P(ConsoleOnPipes, ASlowReaderPausesTheSourcesAndLosesNothing) {
  Source source;
  console_->attach(Stream::out, source);
  std::string sent;
  while (!source.paused) {
    sent += std::to_string(sent.size()) + "\n";
    say(*console_, source, std::to_string(sent.size()) + "\n");
    ASSERT_LT(sent.size(), 2u << 20);
  }
  EXPECT_GT(console_->pending(Stream::out), 100000u);
  EXPECT_LT(console_->pending(Stream::out), 101000u);
  EXPECT_EQ(fcntl(out_.write.get(), F_GETFL) & O_NONBLOCK, 0);
  std::size_t got = 0;
  bool still_paused_above_low_water = true;
  while (console_->pending(Stream::out) != 0) {
    got += read_some(out_.read.get(), 5000).size();
    loop_.run_once();
    if (!source.paused && console_->pending(Stream::out) > 10000) {
      still_paused_above_low_water = false;
    }
  }
  EXPECT_TRUE(still_paused_above_low_water);
  EXPECT_FALSE(source.paused);
  EXPECT_FALSE(loop_.run_once()) << "nothing left to watch";
  ASSERT_EQ(fcntl(out_.read.get(), F_SETFL, O_NONBLOCK), 0);
  for (std::string more; !(more = read_some(out_.read.get())).empty();)
    got += more.size();
  EXPECT_NEAR(static_cast<double>(got), static_cast<double>(sent.size()), 8);
  console_->detach(Stream::out, source);
}

TEST_P(ConsoleOnPipes, AReaderThatGoesIsNoTrouble) {
  Source source;
  console_->attach(Stream::out, source);
  console_->take_log();
  while (!source.paused)
    say(*console_, source, std::string(1000, 'x') + "\n");
  out_.read.reset();
  for (int i = 0; i < 1000 && !console_->broken(Stream::out); ++i)
    loop_.run_once();
  EXPECT_TRUE(console_->broken(Stream::out));
  EXPECT_FALSE(source.paused);
  say(*console_, source, "more\n");
  EXPECT_EQ(console_->pending(Stream::out), 0u);
  const std::string said = read_some(err_.read.get());
  EXPECT_NE(said.find("cannot write to stdout: Broken pipe"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  EXPECT_FALSE(console_->drain(in(100)));
  console_->detach(Stream::out, source);
}

TEST_P(ConsoleOnPipes, AnUnterminatedLineIsEndedBeforeAnotherSpeaks) {
  Source a;
  Source b;
  console_->attach(Stream::out, a);
  console_->attach(Stream::out, b);
  say(*console_, a, "half");
  say(*console_, a, "-more");
  say(*console_, b, "whole\n");
  say(*console_, a, "rest\n");
  EXPECT_EQ(a.cuts, 1);
  EXPECT_EQ(b.cuts, 0);
  say(*console_, a, " 10%");
  say(*console_, b, "\r 20%", true);
  EXPECT_EQ(a.cuts, 2);
  console_->detach(Stream::out, b);
  console_->write(Stream::out, "agent\n");
  EXPECT_EQ(read_some(out_.read.get()), "half-more\nwhole\nrest\n 10%\r 20%\nagent\n");
  console_->detach(Stream::out, a);
}

TEST_P(ConsoleOnPipes, DrainWaitsForAReaderButNotForEver) {
  console_->write(Stream::out, std::string(300000, 'x') + "\n");
  EXPECT_FALSE(console_->drain(in(20)));
  std::size_t got = 0;
  std::thread reader([&] {
    while (got < 300001)
      got += read_some(out_.read.get()).size();
  });
  EXPECT_TRUE(console_->drain(in(10000)));
  EXPECT_EQ(console_->pending(Stream::out), 0u);
  reader.join();
  EXPECT_EQ(got, 300001u);
}

TEST_P(ConsoleOnPipes, LogLinesGoThroughIt) {
  console_->take_log();
  log::error("hello");
  EXPECT_NE(read_some(err_.read.get()).find("lockstep] hello\n"), std::string::npos);
}

TEST(Console, ASocketIsWrittenWithoutBlockingAndKeepsItsFlags) {
  io::Loop loop;
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const io::Fd near(ends[0]);
  const io::Fd far(ends[1]);
  Console console(loop, {near.get(), near.get()});
  const std::string text(2 << 20, 'x');
  console.write(Stream::out, text);
  EXPECT_GT(console.pending(Stream::err), 0u) << "both streams are one";
  std::size_t got = 0;
  while (got < text.size()) {
    got += read_some(far.get(), 100000).size();
    loop.run_once();
  }
  EXPECT_EQ(console.pending(Stream::out), 0u);
  EXPECT_EQ(fcntl(near.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(Console, ATerminalKeepsItsFlags) {
  io::Loop loop;
  auto pty = open_pty(-1);
  ASSERT_TRUE(pty) << pty.error().message;
  Console console(loop, {pty->slave.get(), pty->slave.get()});
  const std::string text(100000, 'x');
  console.write(Stream::out, text);
  EXPECT_GT(console.pending(Stream::out), 0u);
  EXPECT_EQ(fcntl(pty->slave.get(), F_GETFL) & O_NONBLOCK, 0);
  std::size_t got = 0;
  while (got < text.size()) {
    got += read_some(pty->master.get()).size();
    loop.run_once();
  }
}

TEST(Console, OneFileForBothStreamsKeepsTheOrder) {
  io::Loop loop;
  char name[] = "/tmp/console_test_XXXXXX";
  const io::Fd file(mkstemp(name));
  const io::Fd again(dup(file.get()));
  Console console(loop, {file.get(), again.get()});
  Source source;
  console.attach(Stream::out, source);
  say(console, source, "half");
  console.write(Stream::err, "error\n");
  EXPECT_EQ(*io::read_file(name), "half\nerror\n");
  EXPECT_EQ(source.cuts, 1);
  unlink(name);
  console.detach(Stream::out, source);
}

TEST(Console, AFullDiskLosesOutputAndNothingElse) {
  io::Loop loop;
  auto err = *io::make_pipe();
  const io::Fd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  Console console(loop, {full.get(), err.write.get()});
  console.take_log();
  console.write(Stream::out, "x\n");
  console.write(Stream::out, "y\n");
  EXPECT_FALSE(console.broken(Stream::out)) << "there may be room again";
  EXPECT_EQ(console.pending(Stream::out), 0u);
  const std::string said = read_some(err.read.get());
  EXPECT_NE(said.find("cannot write to stdout: No space left on device"), std::string::npos);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
}

TEST(Console, AClosedDescriptorIsBroken) {
  io::Loop loop;
  auto err = *io::make_pipe();
  Console console(loop, {-1, err.write.get()});
  EXPECT_TRUE(console.broken(Stream::out));
  console.write(Stream::out, "x\n");
  EXPECT_EQ(console.pending(Stream::out), 0u);
}

}  // namespace
}  // namespace lockstep::logs
