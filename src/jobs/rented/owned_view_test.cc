// Views a job whose owner is played by the test, with the real output and the real clock.
#include "jobs/rented/owned_view.h"

#include "hosts/link_testing.h"
#include "io/fd.h"
#include "jobs/rented/stream_text.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::jobs::rented {
namespace {

using link::Stream;
using Texts = std::vector<std::string>;

class OwnedViewTest : public ::testing::Test {
 protected:
  using FakeEnd = hosts::FakeLinks::End;

  OwnedViewTest() {
    proc::block(proc::handled_signals());
    links_.on_frame = [this](FakeEnd& end, const link::Frame& frame) {
      if (const auto* signal = std::get_if<link::Signal>(&frame)) on_signal_(end, signal->number);
      const auto* start = std::get_if<link::Start>(&frame);
      if (start == nullptr) return;
      asked_.push_back(start->argv);
      end.say(link::Started{1, 42});
      if (views_.empty()) return end.say(link::Exit{1, 0, 0});
      auto next = std::move(views_.front());
      views_.erase(views_.begin());
      next(end);
    };
  }

  static void log(FakeEnd& end, StreamEncoder& encoder, Stream stream, std::string_view text) {
    end.say(link::Data{1, Stream::out, encoder.encode(stream, text)});
  }

  OwnedViewEnd view(const std::string& how = "all") {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const auto end =
        view_at_owner({.place = {.name = "me@h", .target = {.host = "h"}},
                       .rental = "r",
                       .how = how,
                       .settings = {.cluster = "lab", .host = "me@h"},
                       .say = [this](const std::string& text) { said_.push_back(text); }},
                      links_.open_link());
    err_ = testing::internal::GetCapturedStderr();
    out_ = testing::internal::GetCapturedStdout();
    EXPECT_TRUE(end);
    return end ? *end : OwnedViewEnd();
  }

  hosts::FakeLinks links_;
  std::vector<std::function<void(FakeEnd&)>> views_;  // after their start, the first first
  std::function<void(FakeEnd&, int)> on_signal_ = [](FakeEnd&, int) {};
  std::vector<Texts> asked_;
  Texts said_;
  std::string out_;
  std::string err_;
};

TEST_F(OwnedViewTest, BothStreamsOfTheLogAreShownAsTheyAre) {
  views_ = {[](FakeEnd& end) {
    StreamEncoder encoder;
    log(end, encoder, Stream::out, "one\x1b[1m\n");
    log(end, encoder, Stream::err, "warns\n");
    end.say(link::Data{1, Stream::err, "guard\x1b[2J runs\n"});
    end.say(link::Exit{1, 3, 0});
  }};
  EXPECT_EQ(view().code, 3);
  EXPECT_EQ(out_, "one\x1b[1m\n");
  EXPECT_EQ(err_, "warns\nguard\\x1b[2J runs\n");
  EXPECT_EQ(asked_, std::vector<Texts>({{"host-rental", "follow", "r", "all", "0"}}));
}

TEST_F(OwnedViewTest, ALostLinkGoesOnAtItsByte) {
  views_ = {[](FakeEnd& end) {
              StreamEncoder encoder;
              log(end, encoder, Stream::out, "one\n");
              log(end, encoder, Stream::err, "warns\n");
              end.lose("the connection broke");
            },
            [](FakeEnd& end) {
              StreamEncoder encoder;
              log(end, encoder, Stream::out, "two\n");
              end.say(link::Exit{1, 0, 0});
            }};
  EXPECT_EQ(view().code, 0);
  EXPECT_EQ(out_, "one\ntwo\n");
  ASSERT_EQ(asked_.size(), 2U);
  EXPECT_EQ(asked_[1].back(), "10");
  EXPECT_EQ(said_, (Texts{"me@h: the connection broke; the job needs no connection, trying again "
                          "for 60 s",
                          "me@h is back"}));
}

TEST_F(OwnedViewTest, DroppedBytesOfALongLogCount) {
  views_ = {[](FakeEnd& end) {
              StreamEncoder encoder;
              log(end, encoder, Stream::out, "one\n");
              end.say(link::Data{1, Stream::out, StreamEncoder::place(1000)});
              log(end, encoder, Stream::out, "nine\n");
              end.lose("the connection broke");
            },
            [](FakeEnd& end) {
              end.say(link::Exit{1, 0, 0});
            }};
  EXPECT_EQ(view().code, 0);
  EXPECT_EQ(out_, "one\nnine\n");
  EXPECT_EQ(asked_[1].back(), "1005");
}

TEST_F(OwnedViewTest, TheIdOfADetachedJobIsPrintedOnce) {
  const auto says = [](FakeEnd& end) {
    StreamEncoder encoder;
    log(end, encoder, Stream::err, "rents\n");
    log(end, encoder, Stream::out, "k3v9qa\n");
  };
  views_ = {[&](FakeEnd& end) {
              says(end);
              end.lose("the connection broke");
            },
            [&](FakeEnd& end) {
              StreamEncoder encoder;
              log(end, encoder, Stream::out, "k3v9qa\n");
              end.say(link::Exit{1, 0, 0});
            }};
  EXPECT_EQ(view("start").code, 0);
  EXPECT_EQ(out_, "k3v9qa\n");
  EXPECT_EQ(err_, "rents\n");
  EXPECT_EQ(asked_[1].back(), "6") << "the id is no part of the log";
}

TEST_F(OwnedViewTest, ACommandThatOnlyWaitsShowsNoLog) {
  views_ = {[](FakeEnd& end) {
    StreamEncoder encoder;
    log(end, encoder, Stream::out, "not asked for\x1b[2J\n");
    log(end, encoder, Stream::err, "not asked for\x1b[2J\n");
    end.say(link::Exit{1, 0, 0});
  }};
  EXPECT_EQ(view("quiet").code, 0);
  EXPECT_EQ(out_ + err_, "");
}

TEST_F(OwnedViewTest, CtrlCReachesTheViewOnTheHost) {
  views_ = {[](FakeEnd&) { (void)raise(SIGINT); }};
  on_signal_ = [](FakeEnd& end, int number) {
    EXPECT_EQ(number, SIGINT);
    end.say(link::Exit{1, 130, 0});
  };
  EXPECT_EQ(view().code, 130);
  ASSERT_EQ(said_.size(), 1U);
  EXPECT_EQ(said_[0].find("'lab' is being canceled; "), 0U);
  EXPECT_EQ(proc::SignalWatch::take_stop(), 0) << "later errors have other causes";
}

TEST_F(OwnedViewTest, ACancellationGoesWithTheNextView) {
  views_ = {[](FakeEnd& end) {
              (void)raise(SIGINT);
              end.lose("the connection broke");
            },
            [](FakeEnd& end) {
              end.say(link::Exit{1, 130, 0});
            }};
  EXPECT_EQ(view().code, 130);
  EXPECT_EQ(asked_[1].back(), "canceled");
}

TEST_F(OwnedViewTest, ACancellationThatTheCourseHasGotIsNotRepeated) {
  for (const std::string how : {"all", "quiet", "start"}) {
    views_ = {[](FakeEnd& end) {
                (void)raise(SIGINT);
                end.lose("the connection broke");
              },
              [](FakeEnd& end) {
                end.say(link::Data{1, Stream::out, StreamEncoder::canceled()});
                end.lose("the connection broke");
              },
              [](FakeEnd& end) {
                end.say(link::Exit{1, 130, 0});
              }};
    asked_.clear();
    EXPECT_EQ(view(how).code, 130);
    ASSERT_EQ(asked_.size(), 3U);
    EXPECT_EQ(asked_[1].back(), "canceled");
    EXPECT_EQ(asked_[2].back(), "to-end");
  }
}

TEST_F(OwnedViewTest, AClosedTerminalEndsTheView) {
  views_ = {[](FakeEnd&) { (void)raise(SIGHUP); }};
  const OwnedViewEnd end = view();
  EXPECT_EQ(end.signal, SIGHUP);
  EXPECT_FALSE(end.code);
  EXPECT_EQ(said_, Texts{});
}

// A pipe in the place of stdout.
class SlowReader {
 public:
  explicit SlowReader(std::chrono::milliseconds pause) : before_(dup(STDOUT_FILENO)) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    std::fflush(stdout);
    EXPECT_EQ(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
    close(ends[1]);
    thread_ = std::thread([this, pause, from = io::Fd(ends[0])] {
      std::this_thread::sleep_for(pause);
      std::array<char, 65536> bytes{};
      for (ssize_t got = 0; (got = ::read(from.get(), bytes.data(), bytes.size())) > 0;)
        got_ += static_cast<std::size_t>(got);
    });
  }
  ~SlowReader() { EXPECT_FALSE(thread_.joinable()); }
  // Returns how many bytes were printed.
  std::size_t end() {
    dup2(before_.get(), STDOUT_FILENO);
    thread_.join();
    return got_;
  }

 private:
  io::Fd before_;
  std::size_t got_ = 0;
  std::thread thread_;
};

TEST_F(OwnedViewTest, TheSignalThatEndsTheViewDropsNoOutput) {
  constexpr std::size_t kMany = 1UL << 20;
  views_ = {[&](FakeEnd& end) {
    StreamEncoder encoder;
    log(end, encoder, Stream::out, std::string(kMany, 'x'));
    (void)raise(SIGHUP);
  }};
  SlowReader reader(std::chrono::milliseconds(200));
  const auto end = view_at_owner({.place = {.name = "me@h", .target = {.host = "h"}},
                                  .rental = "r",
                                  .how = "all",
                                  .settings = {.cluster = "lab", .host = "me@h"},
                                  .say = [](const std::string&) {}},
                                 links_.open_link());
  EXPECT_EQ(reader.end(), kMany);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->signal, SIGHUP);
}

}  // namespace
}  // namespace lockstep::jobs::rented
