// Sends a small request without a link: the test makes the frames.
#include "hosts/small_command.h"

#include "hosts/end_words.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <memory>
#include <optional>

namespace lockstep::hosts {
namespace {

class SmallCommandTest : public ::testing::Test {
 protected:
  SmallCommandTest() {
    command_ = std::make_unique<SmallCommand>(
        3, [this](const link::Frame& frame) { sent_.push_back(frame); },
        [this](Result<std::string> said) {
          said_ = std::move(said);
          command_.reset();  // as an owner may do inside `done`
        });
    command_->begin({"host-lease", "status"}, "input");
    command_->on_frame(link::Started{3, 1});
  }
  void feed(const link::Frame& frame) {
    ASSERT_TRUE(command_);
    command_->on_frame(frame);
  }

  std::unique_ptr<SmallCommand> command_;
  std::vector<link::Frame> sent_;
  std::optional<Result<std::string>> said_;
};

TEST_F(SmallCommandTest, TheInputGoesOutAndTheOutputComesBack) {
  ASSERT_EQ(sent_.size(), 3U);
  EXPECT_TRUE(std::get<link::Start>(sent_[0]).own);
  EXPECT_EQ(std::get<link::Data>(sent_[1]).bytes, "input");
  EXPECT_TRUE(std::holds_alternative<link::Eof>(sent_[2]));
  feed(link::Data{3, link::Stream::out, "ans"});
  feed(link::Data{3, link::Stream::out, "wer"});
  feed(link::Data{4, link::Stream::out, "of another channel"});
  EXPECT_FALSE(said_);
  feed(link::Exit{3, 0, 0});
  EXPECT_EQ(said_->value(), "answer");
}

TEST_F(SmallCommandTest, AFailureIsToldWithTheLastLineOfStderr) {
  feed(link::Data{3, link::Stream::err, "first\nlast\n"});
  feed(link::Exit{3, 2, 0});
  EXPECT_EQ(said_->error().message, "its lockstep exited with code 2: last");
}

TEST_F(SmallCommandTest, AnEndBySignalIsTold) {
  feed(link::Exit{3, 0, SIGKILL});
  EXPECT_EQ(said_->error().message, "its lockstep was killed by SIGKILL");
}

TEST_F(SmallCommandTest, AnEndlessAnswerIsCut) {
  const std::string much(link::kMaxData, 'x');
  for (int i = 0; i < 17 && command_; ++i)
    command_->on_frame(link::Data{3, link::Stream::out, much});
  ASSERT_TRUE(said_);
  EXPECT_EQ(said_->error().message, "its answer is too long");
}

TEST(EndWords, ARefusalSpeaksForItself) {
  EXPECT_EQ(end_words("x", {.kind = link::ChannelEnd::Kind::refused, .code = 127, .why = "none"}),
            "none");
}

}  // namespace
}  // namespace lockstep::hosts
