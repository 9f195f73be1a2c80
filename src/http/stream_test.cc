#include "http/stream.h"

#include "io/listen.h"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace lockstep::http {
namespace {

// The kernel reports the reset once. Bytes that came before the reset are read first.
TEST(HttpStream, EndsWithAResetBehindUnreadBytes) {
  const auto listener = io::open_listener("127.0.0.1", 0, 1);
  ASSERT_TRUE(listener);
  // The whole message must fit into the receive buffer: a reset drops what still waits to be sent.
  const int room = 1 << 20;
  setsockopt(listener->fd.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<in_port_t>(listener->port));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  io::Fd peer(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(peer.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place), 0);
  io::Fd end(accept4(listener->fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  io::Loop loop;
  std::size_t bytes = 0;
  std::optional<Status> ended;
  Stream stream(loop, std::move(end), nullptr);
  stream.listen({.bytes = [&](std::string_view got) { bytes += got.size(); },
                 .ended = [&](Status status) { ended = std::move(status); }});
  stream.write("unread");
  const std::string said(100'000, 'x');
  ASSERT_EQ(send(peer.get(), said.data(), said.size(), 0), std::ssize(said));
  // Unread bytes of ours make the close a reset.
  peer.reset();
  const auto limit = io::Clock::now() + std::chrono::seconds(5);
  while (!ended && io::Clock::now() < limit)
    loop.run_once();
  ASSERT_TRUE(ended) << "the reset is not seen";
  EXPECT_FALSE(*ended);
  EXPECT_EQ(bytes, said.size());
}

}  // namespace
}  // namespace lockstep::http
