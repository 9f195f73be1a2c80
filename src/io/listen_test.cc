#include "io/listen.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

namespace lockstep::io {
namespace {

// Two threads start at the same moment, as far as two processors allow.
class Together {
 public:
  void arrive() {
    const int round = arrived_++ / 2;
    while (arrived_ / 2 <= round) {
    }
  }

 private:
  std::atomic<int> arrived_ = 0;
};

TEST(Listen, OfTwoThatComeAtOnceOneListens) {
  const int port = open_listener("127.0.0.1", 0, 16)->port;
  constexpr int kRounds = 300;
  std::atomic<int> listening = 0;
  int wrong = 0;
  Together together;
  const auto come = [&](bool counts) {
    for (int round = 0; round < kRounds; ++round) {
      together.arrive();
      const auto listener = open_listener("", port, 16);
      if (listener) ++listening;
      together.arrive();
      if (counts) wrong += listening.exchange(0) == 1 ? 0 : 1;
    }
  };
  std::thread other(come, false);
  come(true);
  other.join();
  EXPECT_EQ(wrong, 0) << "of " << kRounds;
}

TEST(Listen, APortThatIsTakenIsToldAtOnce) {
  const auto first = open_listener("127.0.0.1", 0, 16);
  const auto second = open_listener("127.0.0.1", first->port, 16);
  ASSERT_FALSE(second);
  EXPECT_EQ(code_of(second), Errc::already_exists);
}

// To a program that names the port, and to one that connects to the port. The kernel passes over a
// bound port for programs that name none.
TEST(Listen, AReservedPortIsGivenToNobodyAndRefusesCallers) {
  const int port = open_listener("", 0, 16)->port;
  auto reserved = reserve_port(port);
  ASSERT_TRUE(reserved) << reserved.error().message;
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<in_port_t>(port));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* address = reinterpret_cast<const sockaddr*>(&place);
  const Fd binder(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_NE(bind(binder.get(), address, sizeof place), 0);
  EXPECT_EQ(errno, EADDRINUSE);
  const Fd caller(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_NE(connect(caller.get(), address, sizeof place), 0);
  EXPECT_EQ(errno, ECONNREFUSED);
  reserved->fd.reset();
  EXPECT_TRUE(open_listener("", port, 16));
}

}  // namespace
}  // namespace lockstep::io
