// Drives the host's end over pipes, with frames as a client sends them.
#include "remote/host_end.h"

#include "io/loop_testing.h"
#include "io/own_folders.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

namespace lockstep::remote {
namespace {

using link::Stream;

class HostEndTest : public ::testing::Test {
 protected:
  HostEndTest() {
    signal(SIGPIPE, SIG_IGN);
    setenv("HOME", "/tmp", 1);
    io::Pipe to_host = std::move(io::make_pipe().value());
    io::Pipe to_client = std::move(io::make_pipe().value());
    host_ = std::make_unique<HostEnd>(loop_, std::move(to_host.read), std::move(to_client.write),
                                      proc::Containment::set_up(proc::Rung::none).value());
    client_ = std::make_unique<link::Endpoint>(
        loop_, std::move(to_client.read), std::move(to_host.write),
        link::FrameReader::Wants::greeting,
        link::Endpoint::Events{[this](const link::Frame& frame) { hear(frame); },
                               [this](const Error& error) { heard_ += error.message; }});
    host_->begin();
    client_->send(link::Hello{});
  }

  void hear(const link::Frame& frame) {
    if (const auto* data = std::get_if<link::Data>(&frame)) {
      (data->stream == Stream::result ? result_
       : data->stream == Stream::out  ? out_
                                      : err_) += data->bytes;
      if (reads_)
        client_->send(link::Credit{data->channel, data->stream,
                                   static_cast<std::uint32_t>(data->bytes.size())});
    }
    const auto* credit = std::get_if<link::Credit>(&frame);
    if (credit != nullptr && credit->stream == Stream::in) input_credit_ += credit->bytes;
    if (const auto* exit = std::get_if<link::Exit>(&frame)) exit_ = *exit;
    if (const auto* refused = std::get_if<link::Refused>(&frame)) refused_ = *refused;
    if (std::holds_alternative<link::Started>(frame)) started_ = true;
    heard_ += std::string(link::frame_name(frame)) + " ";
  }

  template <class Fact>
  void until(Fact fact) {
    ASSERT_TRUE(io::run_until(loop_, fact));
  }
  link::Exit run(link::Start start) {
    client_->send(start);
    until([this] { return exit_.has_value(); });
    return *exit_;
  }

  io::Loop loop_;
  std::unique_ptr<HostEnd> host_;
  std::unique_ptr<link::Endpoint> client_;
  std::string out_;
  std::string err_;
  std::string result_;
  std::string heard_;
  std::size_t input_credit_ = 0;
  bool started_ = false;
  bool reads_ = true;  // gives credit for the output it receives
  std::optional<link::Exit> exit_;
  std::optional<link::Refused> refused_;
};

TEST(HostEndOfASilentClient, EndsItsCommands) {
  io::Loop loop;
  io::Pipe to_host = std::move(io::make_pipe().value());
  io::Pipe to_client = std::move(io::make_pipe().value());
  HostEnd host(loop, std::move(to_host.read), std::move(to_client.write),
               proc::Containment::set_up(proc::Rung::none).value(), std::chrono::milliseconds(1));
  host.begin();
  loop.run();  // until the host's end stops the loop: the client keeps its end open
  EXPECT_TRUE(to_host.write);
}

TEST_F(HostEndTest, ARequestGoesToTheBinaryThatServesTheLink) {
  const auto exit = run({.channel = 1, .argv = {"--gtest_list_tests"}, .own = true});
  EXPECT_EQ(exit.code, 0);
  EXPECT_NE(out_.find("ARequestGoesToTheBinaryThatServesTheLink"), std::string::npos);
}

TEST_F(HostEndTest, ArgumentsFolderAndEnvironmentArriveByteForByte) {
  const auto exit = run({1,
                         {"sh", "-c", R"(printf '%s|' "$PWD" "$A" "$@"; printf no >&2; exit 3)",
                          "sh", "", "a b", "$HOME", "'\"\\\n", "-n", "\xff\x01"},
                         {"A=x y"},
                         "/usr",
                         false});
  EXPECT_EQ(out_, "/usr|x y||a b|$HOME|'\"\\\n|-n|\xff\x01|");
  EXPECT_EQ(err_, "no");
  EXPECT_EQ(exit.code, 3);
  EXPECT_EQ(exit.signal, 0);
}

TEST_F(HostEndTest, WithoutHomeTheHomeIsThatOfTheAccount) {
  unsetenv("HOME");
  EXPECT_EQ(run({.channel = 1, .argv = {"pwd"}}).code, 0);
  EXPECT_EQ(out_, io::home_folder() + "\n");
}

TEST_F(HostEndTest, AFolderIsRelativeToTheHome) {
  run({1, {"pwd"}, {}, "", false});
  EXPECT_EQ(out_, "/tmp\n");
}

TEST_F(HostEndTest, InputFlowsWithoutLimitOfSize) {
  client_->send(link::Start{1, {"cat"}, {}, "", true});
  const std::string block(link::kMaxData, 'x');
  const std::size_t blocks = 3 * link::kWindow / block.size();
  for (std::size_t i = 0; i < blocks; ++i)
    client_->send(link::Data{1, Stream::in, block});
  client_->send(link::Eof{1, Stream::in});
  until([this] { return exit_.has_value(); });
  EXPECT_EQ(out_.size(), blocks * block.size());
  EXPECT_EQ(input_credit_, out_.size());  // otherwise a client would stop after its first window
}

TEST_F(HostEndTest, AResultComesBackBesideTheOutput) {
  const auto exit = run({.channel = 1,
                         .argv = {"sh", "-c", "echo out $LOCKSTEP_RESULT_FD; echo $X >&3"},
                         .env = {"X=value"},
                         .result = true});
  EXPECT_EQ(exit.code, 0);
  EXPECT_EQ(out_, "out 3\n");
  EXPECT_EQ(result_, "value\n");
}

TEST_F(HostEndTest, AResultWaitsForItsReader) {
  reads_ = false;
  client_->send(link::Start{
      .channel = 1, .argv = {"sh", "-c", "head -c 9000000 /dev/zero >&3"}, .result = true});
  until([this] { return result_.size() >= link::kWindow; });
  client_->send(link::Ping{1});
  until([this] { return heard_.ends_with("pong "); });
  EXPECT_EQ(result_.size(), link::kWindow);
  reads_ = true;
  client_->send(link::Credit{1, Stream::result, static_cast<std::uint32_t>(link::kWindow)});
  until([this] { return exit_.has_value(); });
  EXPECT_EQ(result_.size(), 9000000U);
}

TEST_F(HostEndTest, WithoutARequestThereIsNoThirdDescriptor) {
  run({.channel = 1, .argv = {"sh", "-c", "echo ${LOCKSTEP_RESULT_FD-unset}; ls /proc/self/fd/3"}});
  EXPECT_EQ(out_, "unset\n");
  EXPECT_NE(err_.find("/proc/self/fd/3"), std::string::npos);
}

TEST_F(HostEndTest, AnOutputWaitsForItsReader) {
  reads_ = false;
  client_->send(link::Start{1, {"head", "-c", "9000000", "/dev/zero"}, {}, "", false});
  until([this] { return out_.size() >= link::kWindow; });
  client_->send(link::Ping{1});
  until([this] { return heard_.ends_with("pong "); });
  EXPECT_EQ(out_.size(), link::kWindow);
  reads_ = true;
  client_->send(link::Credit{1, Stream::out, static_cast<std::uint32_t>(link::kWindow)});
  until([this] { return exit_.has_value(); });
  EXPECT_EQ(out_.size(), 9000000U);
}

TEST_F(HostEndTest, SignalsReachTheCommandAndItsEndIsTold) {
  // dash blocks signals while it forks: a `sleep` that it had just forked would miss the signal.
  client_->send(link::Start{1, {"sh", "-c", "echo up; exec sleep 1000"}, {}, "", false});
  until([this] { return !out_.empty(); });
  client_->send(link::Signal{1, SIGTERM});
  until([this] { return exit_.has_value(); });
  EXPECT_EQ(exit_->signal, SIGTERM);
}

TEST_F(HostEndTest, WhatCannotBeStartedIsRefusedAsAShellWould) {
  client_->send(link::Start{1, {"no-such-program"}, {}, "", false});
  until([this] { return refused_.has_value(); });
  EXPECT_EQ(refused_->code, 127);
  EXPECT_EQ(refused_->why, "find no-such-program in PATH: No such file or directory");
  refused_.reset();
  client_->send(link::Start{2, {"/etc/passwd"}, {}, "", false});
  until([this] { return refused_.has_value(); });
  EXPECT_EQ(refused_->code, 126);
  refused_.reset();
  client_->send(link::Start{3, {"true"}, {}, "/no/such/folder", false});
  until([this] { return refused_.has_value(); });
  EXPECT_EQ(refused_->why, "/no/such/folder: No such file or directory");
  EXPECT_EQ(refused_->code, 126);
}

TEST_F(HostEndTest, AClientThatLeavesEndsItsCommands) {
  client_->send(link::Start{1, {"sleep", "1000"}, {}, "", false});
  until([this] { return started_; });
  client_.reset();
  loop_.run();  // until the host's end stops the loop
}

TEST_F(HostEndTest, AClientOfAnotherVersionIsNotServed) {
  client_->send(link::Hello{.version = 9});
  loop_.run();
}

TEST(MergedEnvironment, TheClientsValuesWin) {
  const char* const own[] = {"A=1", "PATH=/bin", "AB=2", nullptr};
  EXPECT_EQ(merged_environment(own, {"A=x", "C="}),
            (std::vector<std::string>{"PATH=/bin", "AB=2", "A=x", "C="}));
}

}  // namespace
}  // namespace lockstep::remote
