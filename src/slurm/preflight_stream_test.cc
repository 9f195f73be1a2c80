#include "slurm/preflight_stream.h"

#include "io/loop_testing.h"
#include "slurm/preflight_run.h"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

namespace lockstep::slurm {
namespace {

using Side = PreflightStream::Side;

class PreflightStreams : public ::testing::Test {
 protected:
  PreflightStreams() {
    int pair[2];
    LOCKSTEP_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    one_ = io::Fd(pair[0]);
    two_ = io::Fd(pair[1]);
  }
  std::unique_ptr<PreflightStream> stream(io::Fd fd, Side side, const std::string& token,
                                          const std::string& job = "1.0") {
    return std::make_unique<PreflightStream>(
        loop_, std::move(fd), side, token, job,
        PreflightStream::Events{.message =
                                    [this, side](PreflightKind kind, std::string_view body) {
                                      (side == Side::accepts ? heard_ : answered_) +=
                                          std::to_string(static_cast<int>(kind)) +
                                          std::string(body);
                                    },
                                .ended = [this](const Error& error) { ended_ = error.message; }});
  }

  io::Loop loop_;
  io::Fd one_;
  io::Fd two_;
  std::string heard_;
  std::string answered_;
  std::string ended_;
};

TEST_F(PreflightStreams, BothSidesAreHeard) {
  const auto dials = stream(std::move(one_), Side::dials, "token");
  const auto accepts = stream(std::move(two_), Side::accepts, "token");
  dials->send(PreflightKind::hello, "3");
  io::run_until(loop_, [&] { return !heard_.empty(); });
  EXPECT_EQ(heard_, "13");
  accepts->send(PreflightKind::decision, std::string(200'000, 'x'));
  io::run_until(loop_, [&] { return !answered_.empty(); });
  EXPECT_EQ(answered_.size(), 200'001U);
  dials->send(PreflightKind::facts, "more");
  io::run_until(loop_, [&] { return heard_.size() > 2; });
  EXPECT_EQ(heard_, "133more");
}

TEST_F(PreflightStreams, AnotherTokenIsNotHeard) {
  const auto dials = stream(std::move(one_), Side::dials, "token");
  const auto accepts = stream(std::move(two_), Side::accepts, "other");
  dials->send(PreflightKind::hello, "3");
  io::run_until(loop_, [&] { return !ended_.empty(); });
  EXPECT_EQ(heard_, "");
  EXPECT_EQ(ended_, "another program answers");
}

TEST_F(PreflightStreams, NorAnotherRunOfTheJob) {
  const auto dials = stream(std::move(one_), Side::dials, "token", "1.0");
  const auto accepts = stream(std::move(two_), Side::accepts, "token", "1.0.r1");
  dials->send(PreflightKind::hello, "3");
  io::run_until(loop_, [&] { return !ended_.empty(); });
  EXPECT_EQ(heard_, "");
}

// An agent that dials early must not take a word of the pre-flight for the rendezvous.
TEST_F(PreflightStreams, AStrangerHearsNothing) {
  const auto accepts = stream(std::move(two_), Side::accepts, "token");
  const std::string hello = "LOCKSTEP HUB\r\n\r\n and what an agent says then, which is long";
  ASSERT_GT(send(one_.get(), hello.data(), hello.size(), 0), 0);
  io::run_until(loop_, [&] { return !ended_.empty(); });
  char byte = 0;
  EXPECT_EQ(recv(one_.get(), &byte, 1, MSG_DONTWAIT), -1);
}

TEST(PreflightDecision, TheFirstOneHolds) {
  std::string name = ::testing::TempDir() + "/decision-XXXXXX";
  const std::string folder = mkdtemp(name.data());
  bool made = false;
  PreflightDecision first;
  first.lines = {"first"};
  ASSERT_TRUE(keep_first_decision(folder + "/file", first, made));
  EXPECT_TRUE(made);
  PreflightDecision second;
  second.ends = true;
  const auto kept = keep_first_decision(folder + "/file", second, made);
  ASSERT_TRUE(kept);
  EXPECT_FALSE(made);
  EXPECT_FALSE(kept->ends);
  EXPECT_EQ(kept->lines, first.lines);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::slurm
