// A connection whose other end reads late or never.
#include "rendezvous/hub/hub_stream.h"

#include "io/listen.h"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <utility>

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;

struct HubStreamTest : public ::testing::Test {
  HubStreamTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    other = io::Fd(ends[0]);
    stream.emplace(loop, io::Fd(ends[1]),
                   HubStream::Events{.frame = [](const Frame&) {},
                                     .bytes = {},
                                     .ended = [this](const Error& error) { ended = error; }});
  }
  template <class Fact>
  void until(Fact fact) {
    const auto limit = io::Clock::now() + 20s;
    while (!fact() && io::Clock::now() < limit)
      loop.run_once();
    ASSERT_TRUE(fact());
  }

  const Bytes mebibyte = std::make_shared<const std::string>(1U << 20, 'x');
  io::Loop loop;
  io::Fd other;
  std::optional<HubStream> stream;
  std::optional<Error> ended;
};

TEST_F(HubStreamTest, APeerThatReadsNothingIsGivenUp) {
  for (int i = 0; i < 20; ++i)
    stream->send(mebibyte);
  until([&] { return ended.has_value(); });
}

TEST_F(HubStreamTest, APeerThatReadsLateIsNot) {
  std::size_t read = 0;
  for (std::size_t sent = kPreamble.size(); sent < (40U << 20);) {
    stream->send(mebibyte);
    sent += mebibyte->size();
    until([&] {
      static char bytes[1U << 16];
      const ssize_t got = recv(other.get(), bytes, sizeof bytes, 0);
      if (got > 0) read += static_cast<std::size_t>(got);
      return read == sent;
    });
  }
  EXPECT_FALSE(ended);
}

// The kernel reports the reset once. Bytes that came before it are read first.
TEST(HubStreamOfTcp, EndsWithAResetBehindUnreadBytes) {
  const auto listener = io::open_listener("127.0.0.1", 0, 1);
  ASSERT_TRUE(listener);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<in_port_t>(listener->port));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  io::Fd peer(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(peer.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place), 0);
  io::Fd end(accept4(listener->fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  io::Loop loop;
  int frames = 0;
  bool ended = false;
  HubStream stream(loop, std::move(end),
                   {.frame = [&](const Frame&) { ++frames; },
                    .bytes = {},
                    .ended = [&](const Error&) { ended = true; }});
  const std::string said = std::string(kPreamble) + frame_bytes(Leave{});
  ASSERT_EQ(send(peer.get(), said.data(), said.size(), 0), static_cast<ssize_t>(said.size()));
  // Unread bytes of ours make the close a reset.
  peer.reset();
  const auto limit = io::Clock::now() + 5s;
  while (!ended && io::Clock::now() < limit)
    loop.run_once();
  EXPECT_TRUE(ended);
  EXPECT_EQ(frames, 1);
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
