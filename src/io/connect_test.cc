#include "io/connect.h"

#include "io/listen.h"

#include <gtest/gtest.h>

#include <errno.h>

namespace lockstep::io {
namespace {

using std::chrono::milliseconds;

Result<Fd> dial(const std::string& host, int port, milliseconds timeout = milliseconds(5000)) {
  Loop loop;
  Result<Fd> result = fail(Errc::internal, "no answer");
  Dial one(loop, host, port, timeout, [&](Result<Fd> fd) {
    result = std::move(fd);
    loop.stop();
  });
  loop.run();
  return result;
}

TEST(Dial, Connects) {
  const auto listener = open_listener("127.0.0.1", 0, 8);
  ASSERT_TRUE(listener);
  const auto fd = dial("127.0.0.1", listener->port);
  ASSERT_TRUE(fd) << fd.error().message;
  EXPECT_TRUE(peer_name(fd->get()).starts_with("127.0.0.1:"));
  EXPECT_TRUE(dial("localhost", listener->port));
}

TEST(Dial, NamesWhatItTried) {
  int port = 0;
  {
    const auto listener = open_listener("127.0.0.1", 0, 8);
    port = listener->port;
  }
  const auto one = dial("127.0.0.1", port);
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().message,
            "connect to 127.0.0.1:" + std::to_string(port) + ": Connection refused");
  EXPECT_EQ(one.error().sys, ECONNREFUSED);
  const auto both = dial("localhost", port);
  ASSERT_FALSE(both);
  EXPECT_NE(both.error().message.find("(tried 127.0.0.1); "), std::string::npos)
      << both.error().message;
  EXPECT_NE(both.error().message.find("(tried ::1)"), std::string::npos) << both.error().message;
}

TEST(Dial, GivesUpInTime) {
  const auto full = open_listener("127.0.0.1", 0, 0);  // room for one that nobody accepts
  ASSERT_TRUE(full);
  std::vector<Fd> crowd;
  crowd.reserve(4);
  for (int i = 0; i < 4; ++i) {
    auto fd = dial("127.0.0.1", full->port, milliseconds(100));
    if (!fd) {
      EXPECT_EQ(fd.error().sys, ETIMEDOUT) << fd.error().message;
      return;
    }
    crowd.push_back(std::move(*fd));
  }
  FAIL() << "a full backlog accepts";
}

TEST(Dial, Forgets) {
  Loop loop;
  {
    const Dial one(loop, "127.0.0.1", 1, milliseconds(1000), [](Result<Fd>) { FAIL(); });
  }
  loop.run();
}

TEST(PlaceText, Brackets) {
  EXPECT_EQ(place_text("h", 1), "h:1");
  EXPECT_EQ(place_text("::1", 2), "[::1]:2");
}

}  // namespace
}  // namespace lockstep::io
