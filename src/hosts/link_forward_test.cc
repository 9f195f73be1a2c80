// Forwards connections of the test over a link whose other end is the test.
#include "hosts/link_forward.h"

#include "hosts/link_testing.h"
#include "io/loop_testing.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::hosts {
namespace {

using link::Stream;

class LinkForwardTest : public ::testing::Test {
 protected:
  LinkForwardTest() {
    signal(SIGPIPE, SIG_IGN);
    links_.on_frame = [this](FakeLinks::End& end, const link::Frame& frame) {
      if (const auto* ping = std::get_if<link::Ping>(&frame); ping != nullptr && answers_)
        end.say(link::Pong{ping->number});
      if (const auto* start = std::get_if<link::Start>(&frame)) {
        starts_.push_back(*start);
        end.say(link::Started{start->channel, 1});
      }
      if (const auto* data = std::get_if<link::Data>(&frame)) input_ += data->bytes;
      if (std::holds_alternative<link::Eof>(frame)) ++ends_of_input_;
      if (std::holds_alternative<link::Signal>(frame)) ++signals_;
    };
  }
  void open() {
    forward_ = std::move(
        LinkForward::open(
            loop_, {.place = {.name = "n1", .target = {}}}, {.host = "127.0.0.1", .port = 4007},
            {[this] { ready_ = true; }, [this](const Error& why) { troubles_.push_back(why); },
             [this](Error why) { failed_.push_back(std::move(why)); }},
            links_.open_link())
            .value());
  }
  io::Fd connect() {
    io::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(forward_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // The kernel connects to a listener on loopback at once.
    (void)::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    return fd;
  }
  // A connection that the other end has begun to serve.
  io::Fd served() {
    if (!forward_) open();
    const std::size_t before = starts_.size();
    io::Fd fd = connect();
    until([&] { return starts_.size() > before; });
    return fd;
  }
  static bool read_some(const io::Fd& fd, std::string& text) {
    std::array<char, 65536> bytes;
    const ssize_t got = ::read(fd.get(), bytes.data(), bytes.size());
    if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
    return got != 0;
  }
  FakeLinks::End& end() { return *links_.ends.at(0); }
  template <class Fact>
  void until(Fact fact) {
    ASSERT_TRUE(io::run_until(loop_, fact));
  }

  io::Loop loop_;
  FakeLinks links_;
  bool answers_ = true;
  bool ready_ = false;
  std::vector<link::Start> starts_;
  std::string input_;
  int ends_of_input_ = 0;
  int signals_ = 0;
  std::vector<Error> troubles_;
  std::vector<Error> failed_;
  std::unique_ptr<LinkForward> forward_;
};

TEST_F(LinkForwardTest, AConnectionIsAProgramThere) {
  io::Fd client = served();
  EXPECT_TRUE(ready_);
  EXPECT_EQ(starts_[0].argv, (std::vector<std::string>{"host-dial", "127.0.0.1", "4007", "carry"}));
  EXPECT_TRUE(starts_[0].own);
  EXPECT_EQ(::write(client.get(), "GET", 3), 3);
  until([&] { return input_ == "GET"; });
  end().say(link::Data{starts_[0].channel, Stream::out, "page"});
  std::string got;
  until([&] {
    read_some(client, got);
    return got == "page";
  });
  end().say(link::Exit{starts_[0].channel, 0, 0});
  until([&] { return !read_some(client, got); });
  EXPECT_TRUE(troubles_.empty());
}

TEST_F(LinkForwardTest, TheEndOfAClientIsPassedOnAndItsProgramIsEnded) {
  io::Fd client = served();
  client.reset();
  until([&] { return ends_of_input_ == 1; });
  // The first write meets a closed socket, the next one its answer.
  until([&] {
    end().say(link::Data{starts_[0].channel, Stream::out, "x"});
    return signals_ > 0;
  });
}

TEST_F(LinkForwardTest, NobodyIsServedBeforeTheLinkAnswers) {
  answers_ = false;
  open();
  const io::Fd client = connect();
  for (int i = 0; i < 20; ++i)
    loop_.run_once();
  EXPECT_FALSE(ready_);
  EXPECT_TRUE(starts_.empty());
  end().say(link::Pong{});
  until([&] { return starts_.size() == 1; });
  EXPECT_TRUE(ready_);
}

TEST_F(LinkForwardTest, AClosedPortThereIsTold) {
  io::Fd client = served();
  end().say(link::Data{starts_[0].channel, Stream::err, "connect: refused\x1b[2J\n"});
  end().say(link::Exit{starts_[0].channel, 1, 0});
  std::string got;
  until([&] { return !read_some(client, got); });
  ASSERT_EQ(troubles_.size(), 1U);
  EXPECT_EQ(troubles_[0].code, Errc::not_found);
  EXPECT_EQ(troubles_[0].message, "n1: connect: refused\\x1b[2J");
}

TEST_F(LinkForwardTest, OneConnectionTooManyWaits) {
  std::vector<io::Fd> clients;
  for (std::size_t i = 0; i < LinkForward::kMostConnections; ++i)
    clients.push_back(served());
  const io::Fd late = connect();
  for (int i = 0; i < 20; ++i)
    loop_.run_once();
  EXPECT_EQ(starts_.size(), LinkForward::kMostConnections);
  end().say(link::Exit{starts_[0].channel, 0, 0});
  until([&] { return starts_.size() == LinkForward::kMostConnections + 1; });
}

TEST_F(LinkForwardTest, AClientThatDoesNotReadStopsItsProgram) {
  const io::Fd client = served();
  // Sends as much as the credit allows, as a host must.
  std::size_t sent = 0;
  const auto credit = [&] {
    std::size_t all = link::kWindow;
    for (const link::Frame& frame : end().sent)
      if (const auto* more = std::get_if<link::Credit>(&frame)) all += more->bytes;
    return all - sent;
  };
  // Turns without credit: several in a row mean that none will come.
  for (int stalled = 0; stalled < 50; ++stalled) {
    for (; credit() >= link::kMaxData; stalled = 0, sent += link::kMaxData)
      end().say(link::Data{starts_[0].channel, Stream::out, std::string(link::kMaxData, 'x')});
    loop_.run_once();
  }
  EXPECT_LT(sent, 32UL << 20) << "what the kernel holds, and the window";
  std::string got;
  until([&] {
    read_some(client, got);
    return got.size() == sent;
  });
  EXPECT_GE(credit(), link::kMaxData) << "the program goes on";
}

TEST_F(LinkForwardTest, TheEndOfTheLinkIsToldOnce) {
  const io::Fd client = served();
  end().lose("the step has ended");
  end().lose("again");
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_[0].message, "n1: the step has ended");
  EXPECT_EQ(failed_[0].code, Errc::unavailable);
}

}  // namespace
}  // namespace lockstep::hosts
