// Runs a command on hosts without any host: the test makes the frames, signals and time.
#include "hosts/command_course.h"

#include <gtest/gtest.h>

#include <signal.h>

namespace lockstep::hosts {
namespace {

using link::ChannelEnd;
using link::Stream;
using std::chrono::seconds;

using OnSignal = CommandCourse::OnSignal;

class CommandCourseTest : public ::testing::Test {
 protected:
  CommandCourse course(std::size_t hosts) {
    for (std::size_t i = 0; i < hosts; ++i)
      request_.hosts.push_back({.name = "gpus-" + std::to_string(i), .target = {}});
    reach_.resize(hosts, {.ready = true, .doing = "logging in"});
    return {request_, [this](std::size_t host) { return reach_[host]; }, now_};
  }
  // Prints the awaited hosts as one text.
  static std::string words(const CommandCourse::SilentHosts& silence) {
    std::string text;
    for (const auto& [name, step] : silence.waiting)
      text.append(name).append(": ").append(step).append("\n");
    return text;
  }

  CommandRequest request_{.hosts = {}, .argv = {"train"}};
  std::vector<CommandCourse::Reach> reach_;
  io::TimePoint now_{seconds(1000)};
};

TEST_F(CommandCourseTest, EachEndOfAChannelIsAnEndOfTheHost) {
  auto course = this->course(4);
  course.end(0, ChannelEnd{.kind = ChannelEnd::Kind::exited, .code = 3});
  course.end(1, ChannelEnd{.kind = ChannelEnd::Kind::signaled, .code = SIGKILL});
  course.end(2, ChannelEnd{.kind = ChannelEnd::Kind::refused, .code = 127, .why = "not found"});
  EXPECT_FALSE(course.all_over());
  course.end(
      3, ChannelEnd{.kind = ChannelEnd::Kind::lost, .why = "gpus-3: the connection was closed"});
  EXPECT_TRUE(course.all_over());
  const auto& endings = course.endings();
  EXPECT_EQ(endings[0].code, 3);
  EXPECT_EQ(endings[0].error, "");
  EXPECT_EQ(endings[1].code, 137);
  EXPECT_EQ(endings[1].signal, SIGKILL);
  EXPECT_EQ(endings[2].code, 127);
  EXPECT_EQ(endings[2].error, "gpus-2: not found");
  EXPECT_EQ(endings[3].code, 255);
  EXPECT_EQ(endings[3].error, "gpus-3: the connection was closed");
  EXPECT_EQ(code_of(endings), 3);
}

TEST_F(CommandCourseTest, TheFirstFailureEndsTheOthersOnce) {
  request_.fail_fast = true;
  auto course = this->course(4);
  EXPECT_FALSE(course.end(0, 0, {}));
  EXPECT_TRUE(course.end(1, 7, {}));
  EXPECT_EQ(course.stop_others(), (std::vector<std::size_t>{2, 3}));
  EXPECT_FALSE(course.end(2, 143, {})) << "only the first failure ends others";
  EXPECT_TRUE(course.endings()[2].stopped);
  EXPECT_FALSE(course.endings()[1].stopped);
}

TEST_F(CommandCourseTest, WithoutFailFastAFailureEndsNobodyElse) {
  auto course = this->course(2);
  EXPECT_FALSE(course.end(0, 7, {}));
  EXPECT_FALSE(course.all_over());
}

TEST_F(CommandCourseTest, SignalsGoToCommandsThatRun) {
  auto course = this->course(1);
  EXPECT_EQ(course.on_signal(SIGCHLD), OnSignal::ignore);
  EXPECT_EQ(course.on_signal(SIGWINCH), OnSignal::ignore);
  EXPECT_EQ(course.on_signal(SIGUSR1), OnSignal::pass_on);
  EXPECT_EQ(course.on_signal(SIGINT), OnSignal::pass_on);
  EXPECT_EQ(course.on_signal(SIGTERM), OnSignal::pass_on);
  EXPECT_EQ(course.on_signal(SIGINT), OnSignal::leave);
  EXPECT_EQ(course.endings()[0].code, 130);
  EXPECT_EQ(course.endings()[0].error, "SIGINT");
  EXPECT_FALSE(course.endings()[0].unasked);
}

TEST_F(CommandCourseTest, CtrlCLeavesWhileAHostIsNotReached) {
  auto course = this->course(2);
  course.end(0, 0, {});
  reach_[1].ready = false;
  EXPECT_EQ(course.on_signal(SIGUSR1), OnSignal::pass_on);
  EXPECT_EQ(course.on_signal(SIGINT), OnSignal::leave);
  EXPECT_EQ(course.endings()[0].code, 0);
  EXPECT_EQ(course.endings()[1].code, 130);
  EXPECT_TRUE(course.endings()[1].unasked);
}

TEST_F(CommandCourseTest, AHostThatAnswersNoPingIsNamed) {
  auto course = this->course(2);
  reach_[1].ready = false;
  auto silence = course.silence(now_ + seconds(5));
  EXPECT_EQ(words(silence), "gpus-1: logging in; Ctrl-C ends this command\n");
  EXPECT_EQ(silence.pings, std::vector<std::size_t>{0});
  silence = course.silence(now_ + seconds(15));
  EXPECT_NE(words(silence).find("gpus-0: no answer for 15 s; Ctrl-C ends"), std::string::npos);
  EXPECT_TRUE(silence.pings.empty()) << "one ping is under way";
  course.on_frame(0, link::Pong{}, now_ + seconds(16));
  course.end(1, 0, {});
  silence = course.silence(now_ + seconds(30));
  EXPECT_EQ(words(silence), "") << "a command may print nothing for hours";
  EXPECT_EQ(silence.pings, std::vector<std::size_t>{0});
}

TEST_F(CommandCourseTest, CtrlCLeavesAHostThatAnswersNoPing) {
  auto course = this->course(1);
  course.silence(now_ + seconds(5));
  course.silence(now_ + seconds(10));
  EXPECT_EQ(course.on_signal(SIGUSR1), OnSignal::pass_on);
  EXPECT_EQ(course.on_signal(SIGINT), OnSignal::leave);
  EXPECT_EQ(course.endings()[0].code, 130);
}

TEST_F(CommandCourseTest, CtrlCGoesToTheCommandOfAHostThatIsBack) {
  auto course = this->course(1);
  course.silence(now_ + seconds(5));
  EXPECT_EQ(course.on_signal(SIGINT), OnSignal::pass_on) << "the ping has just gone out";
  course.silence(now_ + seconds(10));
  course.on_frame(0, link::Pong{}, now_ + seconds(11));
  EXPECT_EQ(course.on_signal(SIGINT), OnSignal::pass_on);
}

TEST_F(CommandCourseTest, AQuietQuestionToLockstepIsNamed) {
  request_.own_binary = true;
  request_.argv = {"host-facts"};
  request_.output = CommandRequest::Output::keep;
  auto course = this->course(1);
  course.on_frame(0, link::Started{1, 1}, now_);
  EXPECT_EQ(words(course.silence(now_)), "gpus-0: its answer; Ctrl-C ends this command\n");
  course.on_frame(0, link::Data{1, Stream::out, "{"}, now_);
  EXPECT_EQ(words(course.silence(now_)), "");
}

TEST_F(CommandCourseTest, OutputIsKeptAsAskedAndWithinBounds) {
  request_.output = CommandRequest::Output::keep_out;
  request_.answer = CommandRequest::Answer::keep;
  auto course = this->course(1);
  EXPECT_TRUE(course.is_kept(Stream::out));
  EXPECT_FALSE(course.is_kept(Stream::err));
  EXPECT_TRUE(course.is_kept(Stream::result));
  EXPECT_TRUE(course.keep(0, Stream::out, "o"));
  EXPECT_TRUE(course.keep(0, Stream::err, "e"));
  EXPECT_TRUE(course.keep(0, Stream::result, "r"));
  EXPECT_FALSE(course.keep(0, Stream::out, {nullptr, kMostKept}));
  request_.most_kept = 4;
  EXPECT_TRUE(course.keep(0, Stream::out, "o"));
  EXPECT_FALSE(course.keep(0, Stream::out, "o"));
  EXPECT_EQ(course.endings()[0].out, "oo");
  EXPECT_EQ(course.endings()[0].err, "e");
  EXPECT_EQ(course.endings()[0].answer, "r");
  request_.output = CommandRequest::Output::print;
  EXPECT_FALSE(course.is_kept(Stream::out));
}

TEST_F(CommandCourseTest, InputAndLabelsFollowTheRequest) {
  using Input = CommandRequest::Input;
  using Labels = CommandRequest::Labels;
  auto course = this->course(2);
  EXPECT_FALSE(course.has_input()) << "stdin has one reader";
  EXPECT_EQ(course.prefix(1), "gpus-1: ");
  request_.labels = Labels::never;
  EXPECT_EQ(course.prefix(1), "");
  request_.input = Input::given;
  EXPECT_TRUE(course.has_input());
  request_.input = Input::none;
  EXPECT_FALSE(course.has_input());
  CommandRequest alone{.hosts = {{.name = "gpus-0", .target = {}}}, .argv = {"train"}};
  const CommandCourse one(
      alone, [](std::size_t) { return CommandCourse::Reach{}; }, now_);
  EXPECT_TRUE(one.has_input());
  EXPECT_EQ(one.prefix(0), "");
  alone.labels = Labels::always;
  EXPECT_EQ(one.prefix(0), "gpus-0: ");
}

TEST_F(CommandCourseTest, WorkIsCalledOnceAllAreAskedOrOver) {
  auto course = this->course(3);
  EXPECT_FALSE(course.on_asked(0));
  course.end(1, 255, "gpus-1: refused");
  EXPECT_TRUE(course.on_asked(2));
}

TEST_F(CommandCourseTest, AHostMustSendAtALeastRate) {
  request_.limit = seconds(30);
  request_.least_output = 100;
  auto course = this->course(1);
  const auto at = [this](int second) { return now_ + seconds(second); };
  EXPECT_EQ(course.limit_after(1, at(29), at(29)), seconds(1)) << "one byte is not enough";
  EXPECT_EQ(course.limit_error(0), "gpus-0: only 1 bytes came within 30 s");
  EXPECT_EQ(course.limit_after(98, at(29), at(49)), seconds(1)) << "time of this side";
  EXPECT_EQ(course.limit_after(1, at(50), at(50)), seconds(30));
  EXPECT_EQ(course.limit_error(0), "gpus-0: no answer within 30 s");
  EXPECT_EQ(course.limit_after(1000, at(60), at(70)), seconds(30));
  EXPECT_EQ(course.limit_after(99, at(80), at(80)), seconds(20)) << "no bytes are saved up";
}

TEST_F(CommandCourseTest, TheLimitIsTold) {
  request_.limit = seconds(20);
  EXPECT_EQ(course(1).limit_error(0), "gpus-0: no answer within 20 s");
}

}  // namespace
}  // namespace lockstep::hosts
