// A channel fed with frames: no link, no loop.
#include "link/channel.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <optional>

namespace lockstep::link {
namespace {

using Kind = ChannelEnd::Kind;

constexpr std::uint32_t kNumber = 7;

class ChannelTest : public ::testing::Test {
 protected:
  void open(Channel::Credits credits = Channel::Credits::at_once) {
    channel_ = std::make_unique<Channel>(
        kNumber, [this](const Frame& frame) { note(frame); },
        Channel::Events{.started = [this] { ++started_; },
                        .output =
                            [this](Stream stream, std::string_view bytes) {
                              output_ += fmt::format("{}:{} ", static_cast<int>(stream), bytes);
                            },
                        .input_read = [this](std::size_t bytes) { read_ += bytes; },
                        .ended =
                            [this](const ChannelEnd& end) {
                              ++ends_;
                              end_ = end;
                            }},
        credits);
    channel_->start({.argv = {"cat"}, .input = true});
  }
  void run() {
    open();
    channel_->take(Started{kNumber, 42});
    sent_.clear();
  }
  void note(const Frame& frame) {
    sent_ += std::string(frame_name(frame));
    if (const auto* data = std::get_if<Data>(&frame))
      sent_ += fmt::format("{}", data->bytes.size());
    if (const auto* credit = std::get_if<Credit>(&frame)) sent_ += fmt::format("{}", credit->bytes);
    if (const auto* signal = std::get_if<Signal>(&frame))
      sent_ += fmt::format("{}", signal->number);
    sent_ += " ";
  }

  std::unique_ptr<Channel> channel_;
  std::string sent_;
  std::string output_;
  std::size_t read_ = 0;
  int started_ = 0;
  int ends_ = 0;
  std::optional<ChannelEnd> end_;
};

TEST_F(ChannelTest, AProgramStartsSpeaksAndExits) {
  open();
  EXPECT_EQ(sent_, "start ");
  EXPECT_FALSE(channel_->is_running());
  EXPECT_TRUE(channel_->take(Started{kNumber, 42}));
  EXPECT_TRUE(channel_->is_running());
  EXPECT_EQ(started_, 1);
  channel_->take(Data{kNumber, Stream::out, "yes"});
  channel_->take(Data{kNumber, Stream::err, "no"});
  channel_->take(Eof{kNumber, Stream::out});
  EXPECT_EQ(output_, "1:yes 2:no ");
  channel_->take(Exit{kNumber, 3, 0});
  ASSERT_TRUE(end_);
  EXPECT_EQ(end_->kind, Kind::exited);
  EXPECT_EQ(end_->shell_code(), 3);
  EXPECT_FALSE(end_->succeeded());
  EXPECT_TRUE(channel_->is_over());
}

TEST_F(ChannelTest, EachWayToEndIsToldOnce) {
  const auto ended_by = [this](const Frame& frame, bool runs) {
    open();
    end_.reset();
    ends_ = 0;
    if (runs) channel_->take(Started{kNumber, 42});
    channel_->take(frame);
    channel_->lose("and then the link failed");
    channel_->take(Exit{kNumber, 0, 0});
    EXPECT_EQ(ends_, 1);
    return end_.value_or(ChannelEnd{});
  };
  EXPECT_TRUE(ended_by(Exit{kNumber, 0, 0}, true).succeeded());
  const ChannelEnd killed = ended_by(Exit{kNumber, 0, 9}, true);
  EXPECT_EQ(killed.kind, Kind::signaled);
  EXPECT_EQ(killed.code, 9);
  EXPECT_EQ(killed.shell_code(), 137);
  const ChannelEnd refused = ended_by(Refused{kNumber, 127, "not found"}, false);
  EXPECT_EQ(refused.kind, Kind::refused);
  EXPECT_EQ(refused.shell_code(), 127);
  EXPECT_EQ(refused.why, "not found");
  const ChannelEnd hostile = ended_by(Refused{kNumber, 127, "\xc2\x9bJ"}, false);
  EXPECT_EQ(hostile.why, "\\xc2\\x9bJ");
  const ChannelEnd lost = ended_by(Ping{}, true);
  EXPECT_EQ(lost.kind, Kind::lost);
  EXPECT_EQ(lost.shell_code(), 255);
  EXPECT_EQ(lost.why, "and then the link failed");
}

TEST_F(ChannelTest, FramesOfOtherChannelsAreLeftAlone) {
  run();
  for (const Frame& frame :
       {Frame(Data{1, Stream::out, "x"}), Frame(Exit{8, 0, 0}), Frame(Pong{kNumber})})
    EXPECT_FALSE(channel_->take(frame)) << frame_name(frame);
  EXPECT_EQ(output_, "");
  EXPECT_EQ(ends_, 0);
}

TEST_F(ChannelTest, FramesOutOfTheirStateChangeNothing) {
  open();
  channel_->take(Exit{kNumber, 0, 0});  // nothing runs yet
  channel_->take(Data{kNumber, Stream::out, "early"});
  channel_->take(Started{kNumber, 42});
  channel_->take(Started{kNumber, 43});
  channel_->take(Refused{kNumber, 127, "late"});
  channel_->take(Data{kNumber, Stream::out, ""});
  EXPECT_EQ(started_, 1);
  EXPECT_EQ(output_, "");
  EXPECT_EQ(ends_, 0);
  channel_->take(Exit{kNumber, 0, 0});
  sent_.clear();
  channel_->take(Data{kNumber, Stream::out, "late"});
  channel_->take(Credit{kNumber, Stream::in, 5});
  channel_->write("x");
  channel_->end_input();
  channel_->signal(15);
  EXPECT_EQ(output_ + sent_, "");
  EXPECT_EQ(read_, 0U);
}

TEST_F(ChannelTest, InputWaitsForRoom) {
  run();
  channel_->write(std::string(kWindow + kMaxData + 1, 'x'));
  channel_->end_input();
  std::string window;
  for (std::size_t i = 0; i < kWindow / kMaxData; ++i)
    window += fmt::format("data{} ", kMaxData);
  EXPECT_EQ(sent_, window);
  sent_.clear();
  channel_->take(Credit{kNumber, Stream::in, kMaxData});
  EXPECT_EQ(sent_, fmt::format("data{} ", kMaxData));
  EXPECT_EQ(read_, kMaxData);
  channel_->take(Credit{kNumber, Stream::in, kMaxData});
  EXPECT_EQ(sent_, fmt::format("data{} data1 eof ", kMaxData));
  channel_->write("after the end");
  channel_->end_input();
  EXPECT_EQ(sent_, fmt::format("data{} data1 eof ", kMaxData));
}

TEST_F(ChannelTest, InputMayGoOutBeforeTheProgramRuns) {
  open();
  channel_->write("ask");
  channel_->write("");
  channel_->end_input();
  channel_->signal(2);
  EXPECT_EQ(sent_, "start data3 eof signal2 ");
}

TEST_F(ChannelTest, CreditIsGrantedInLargePieces) {
  run();
  const std::string piece(kMaxData, 'x');
  for (std::size_t i = 1; i < kWindow / 4 / kMaxData; ++i)
    channel_->take(Data{kNumber, Stream::out, piece});
  channel_->take(Data{kNumber, Stream::err, piece});  // each stream has a window of its own
  EXPECT_EQ(sent_, "");
  channel_->take(Data{kNumber, Stream::out, piece});
  EXPECT_EQ(sent_, fmt::format("credit{} ", kWindow / 4));
}

TEST_F(ChannelTest, NoMoreIsGrantedThanHasCome) {
  open(Channel::Credits::when_consumed);
  channel_->take(Started{kNumber, 42});
  sent_.clear();
  for (std::size_t i = 0; i < kWindow / 4 / kMaxData; ++i)
    channel_->take(Data{kNumber, Stream::out, std::string(kMaxData, 'x')});
  EXPECT_EQ(sent_, "");
  channel_->consumed(Stream::out, 10);
  channel_->consumed(Stream::out, kWindow);
  channel_->consumed(Stream::out, kWindow);
  EXPECT_EQ(sent_, fmt::format("credit{} ", kWindow / 4));
}

TEST_F(ChannelTest, AnEventMayDestroyTheChannel) {
  const auto destroyed_by = [](const Frame& frame) {
    std::unique_ptr<Channel> channel;
    int calls = 0;
    const auto destroy = [&] {
      ++calls;
      channel.reset();
    };
    channel = std::make_unique<Channel>(
        kNumber, [](const Frame&) {},
        Channel::Events{.output = [&](Stream, std::string_view) { destroy(); },
                        .input_read = [&](std::size_t) { destroy(); },
                        .ended = [&](const ChannelEnd&) { destroy(); }});
    channel->start({});
    channel->take(Started{kNumber, 1});
    channel->take(frame);
    EXPECT_EQ(calls, 1) << frame_name(frame);
  };
  destroyed_by(Data{kNumber, Stream::out, "x"});
  destroyed_by(Credit{kNumber, Stream::in, 1});
  destroyed_by(Exit{kNumber, 0, 0});
}

}  // namespace
}  // namespace lockstep::link
